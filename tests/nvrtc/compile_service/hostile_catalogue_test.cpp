// Sources that try to read, to leave something behind, or to never end. Each costs its own request.
#include <catch2/catch.hpp>
#include <chrono>
#include <fstream>

#include "base/file.hpp"
#include "base/text.hpp"
#include "tests/nvrtc/compile_service/service_requests.hpp"
#include "tests/support/paths.hpp"

using namespace std::chrono_literals;

namespace cubind::test {
namespace {

constexpr std::chrono::seconds kDeadline{3};  // 8 of the 21 sources reach it, and 8 s too
constexpr char kSecret[] = "the_secret_of_the_host";
constexpr char kKernel[] = "\n__global__ void k(int* p) { *p = 1; }\n";

struct HostileSource {
  std::string name;
  std::string text;
};

std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) {
    all += text;
  }
  return all;
}

/// Each X is the number of the line.
std::string numbered(const std::string& line, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) {
    std::string text = line;
    for (std::size_t at = 0; (at = text.find('X', at)) != std::string::npos;) {
      text.replace(at, 1, std::to_string(i));
    }
    all += text + "\n";
  }
  return all;
}

std::string macro_bomb() {
  std::string text = "#define A0 x x x x x x x x\n";
  for (int i = 1; i < 14; ++i) {
    text += "#define A" + std::to_string(i) + repeated(" A" + std::to_string(i - 1), 8) + "\n";
  }
  return text + "A13" + kKernel;
}

std::vector<HostileSource> without_end() {
  const std::string kernel = "__global__ void k(volatile int* p) ";
  return {
      {"a tree of templates",
       "template <int N, int M> struct B { static const int v = B<N - 1, M * 2>::v + B<N - 1, M * 2 + 1>::v; "
       "};"
       "template <int M> struct B<0, M> { static const int v = M; };" +
           kernel + "{ *p = B<24, 1>::v; }"},
      {"a tree of macros", macro_bomb()},
      {"a constant loop",
       "__device__ constexpr int f() { int n = 0; for (unsigned long long i = 0; i < ~0ull; ++i) n += i & 1; "
       "return n; }" +
           kernel + "{ constexpr int v = f(); *p = v; }"},
      {"a constant recursion", "__device__ constexpr int f(int n) { return n == 0 ? 0 : 1 + f(n - 1); }" +
                                   kernel + "{ constexpr int v = f(1 << 30); *p = v; }"},
      {"4 GiB of data", "__device__ char a[4294967296ull] = {1};" + kernel + "{ *p = a[*p]; }"},
      {"data of all addresses", "__device__ char a[0xffffffffffffffffull];" + kernel + "{ *p = a[*p]; }"},
      {"100 MB of warnings", repeated("#warning " + std::string(1000, 'x') + "\n", 100'000) + kKernel},
      {"20,000 long errors", "template <int N> struct E { static_assert(N < 0, \"" +
                                 std::string(10'000, 'y') + "\"); };\n" + numbered("E<X> eX;", 20'000)},
      {"nested parentheses",
       kernel + "{ *p = " + repeated("(", 200'000) + "1" + repeated(")", 200'000) + "; }"},
      {"nested blocks", kernel + "{" + repeated("{", 200'000) + repeated("}", 200'000) + "}"},
      {"nested templates", "template <class T> struct P {}; " + repeated("P<", 50'000) + "int" +
                               repeated(">", 50'000) + " x;" + kKernel},
      {"nested assembly",
       kernel + "{ asm volatile(\"" + repeated("{", 100'000) + repeated("}", 100'000) + "\"); *p = 1; }"},
      {"much PTX", kernel + "{" + numbered("p[X] = p[X + 1] * p[X + 7] + X;", 60'000) + "}"},
      {"unrolled loops", kernel + "{\n#pragma unroll\nfor (int i = 0; i < 100000; i++) {\n#pragma unroll\n"
                                  "for (int j = 0; j < 1000; j++) p[i * j] += p[j]; } }"},
      {"assembly that repeats", kernel + "{ asm volatile(\".rept 1000000000\\n.endr\"); *p = 1; }"},
      {"a file that includes itself", "#include \"cubind_kernel.cu\"" + std::string(kKernel)},
      {"a file that includes itself by its macro", "#include __FILE__" + std::string(kKernel)},
      {"a million macros", numbered("#define MX X", 1'000'000) + kKernel},
      {"a symbol of a million letters",
       "__device__ int " + std::string(1'000'000, 'x') + ";" + std::string(kKernel)},
      {"terabytes of shared memory",
       kernel + "{ __shared__ char a[1ull << 40]; a[*p] = 1; *p = a[*p + 1]; }"},
      {"arrows without an end",
       "template <int N> struct A { A<N + 1> operator->(); };" + kernel + "{ A<0> a; *p = a->x; }"},
  };
}

/// H is a file of the host.
std::vector<HostileSource> readers() {
  const std::string kernel = kKernel;
  return {
      {"an include", "#define F \"H\"\n#include F" + kernel},
      {"an include through a folder of the toolkit", "#include <cuda/../../../../../../../../..H>" + kernel},
      {"an include through a folder of its own", "#include \"x/../../../../../../../../../..H\"" + kernel},
      {"the next include", "#define F \"H\"\n#include_next F" + kernel},
      {"a question for a file", "#define F \"H\"\n#if __has_include(F)\n#error there\n#endif" + kernel},
      {"bytes of a file", "const unsigned char a[] = {\n#define F \"H\"\n#embed F\n};" + kernel},
      {"another name of the source", "#line 1 \"H\"\n#error shows a line" + kernel},
      {"the name of the source", "#line 1 \"H\"\n__global__ void k(const char** p) { *p = __FILE__; }"},
      {"pragmas",
       "#pragma include \"H\"\n#pragma GCC dependency \"H\"\n#pragma hdrstop(\"H\")\n"
       "#pragma nv_ptxas_options(\"--options-file H\")" +
           kernel},
      {"a pragma operator", "_Pragma(\"include H\")" + kernel},
      {"a module", "import \"H\";" + kernel},
      {"a path put together by macros",
       "#define Q(x) #x\n#define P(x) Q(x)\n#define F H\n#include P(F)" + kernel},
      {"a directive in digraphs and two lines", "%:define F \"H\"\n%:inc\\\nlude F" + kernel},
      {"a question for the next file",
       "#define F \"H\"\n#if __has_include_next(F)\n#error there\n#endif" + kernel},
      {"a section and an alias of its name", "__attribute__((section(\"H\"))) __device__ int g;" + kernel},
      {"bytes in assembly", "__global__ void k(int* p) { asm volatile(\".incbin \\\"H\\\";\"); *p = 1; }"},
      {"a file in assembly", "__global__ void k(int* p) { asm volatile(\".file 1 \\\"H\\\"\"); *p = 1; }"},
      {"an include in assembly",
       "__global__ void k(int* p) { asm volatile(\".include \\\"H\\\"\"); *p = 1; }"},
      {"options in assembly",
       "__global__ void k(int* p) { asm volatile(\".pragma \\\"-o H\\\";\"); *p = 1; }"},
      {"assembly of the whole file", "asm(\".incbin \\\"H\\\"\");" + kernel},
  };
}

std::string with_file(std::string text, const std::string& path) {
  for (std::size_t at = 0; (at = text.find('H', at)) != std::string::npos; at += path.size()) {
    text.replace(at, 1, path);
  }
  return text;
}

v1::CompileRequest request_of(const std::string& text) {
  v1::CompileRequest request = compile_request(text, {"k"});
  request.add_options("--generate-line-info");  // names files in the cubin
  return request;
}

}  // namespace

TEST_CASE("a source without an end stops at its limits with a cause and the next one compiles") {
  CompileServiceOptions options = newest();
  options.deadline = kDeadline;
  CompileService service(options);
  int n = 0;
  for (const HostileSource& source : without_end()) {
    INFO(source.name);
    const v1::CompileReply reply = compile(service, request_of(source.text));
    CHECK((reply.outcome() == v1::CORRECT || !reply.log().empty()));
    CHECK(reply.log().size() < std::size_t{300} << 10);
    const v1::CompileReply next = compile(service, good(++n));
    INFO(next.log());
    CHECK(next.outcome() == v1::CORRECT);
    CHECK(workers().size() <= 1);
  }
}

TEST_CASE("no source reads a file of the host or learns whether there is one") {
  const TempDir folder;
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0755));
  const std::string there = (folder.path() / "there.h").string(),
                    absent = (folder.path() / "absen.h").string();
  std::ofstream(there) << kSecret << ";\n";
  CompileService service(newest());
  for (const HostileSource& source : readers()) {
    INFO(source.name);
    const v1::CompileReply reply = compile(service, request_of(with_file(source.text, there)));
    const v1::CompileReply other = compile(service, request_of(with_file(source.text, absent)));
    CHECK(reply.log().find(kSecret) == std::string::npos);
    CHECK(reply.cubin().find(kSecret) == std::string::npos);
    CHECK(reply.outcome() == other.outcome());
    CHECK(replaced(reply.log(), there, absent) == other.log());
    CHECK(replaced(reply.cubin(), there, absent).size() == other.cubin().size());
    CHECK_FALSE(reply.worker_ends());
  }
  for (const char* name :
       {"/proc/self/environ", "/proc/self/maps", "/proc/self/fd/0", "/dev/stdin", "/dev/zero"}) {
    INFO(name);
    const v1::CompileReply reply =
        compile(service, request_of(with_file("#define F \"H\"\n#include F" + std::string(kKernel), name)));
    CHECK(reply.outcome() == v1::COMPILE);
    CHECK_THAT(reply.log(), Catch::Matchers::Contains("cannot open source file"));
  }
  const std::filesystem::directory_iterator left(folder.path());
  CHECK(std::distance(begin(left), end(left)) == 1);
}

}  // namespace cubind::test
