#include <catch2/catch.hpp>

#include "base/digest.hpp"
#include "tests/nvrtc/compile_worker/any_toolchain.hpp"
#include "tests/nvrtc/compile_worker/worker_process.hpp"
#include "tests/nvrtc/toolchains/toolchains.hpp"
#include "tuner/spec/loaded_code.hpp"

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

namespace cubind::test {
namespace {

constexpr char kScale[] = R"(
template <typename T, int N>
__global__ void scale(T* x, T by) { __shared__ T s[N]; s[threadIdx.x % N] = x[threadIdx.x]; __syncthreads();
                                    x[threadIdx.x] = s[(threadIdx.x + 1) % N] * by; }
extern "C" __global__ void plain(int* p) { *p = VALUE; }
)";

// Its symbols hold whatever the compiler makes unique names of.
constexpr char kHidden[] = R"(
namespace { __device__ int counter = 0; template <int N> __global__ void hidden(int* p) { p[0] = N + counter; } }
)";

v1::CompileRequest scale_request() {
  auto request = compile_request(kScale, {"scale<float, 128>", "plain", "scale<double, 64>"});
  request.add_defines("VALUE=7");
  return request;
}

}  // namespace

TEST_CASE("the hello names the version that the file names promised and the architectures") {
  const Toolchain& toolchain = any_toolchain();
  const WorkerProcess worker(toolchain);
  CHECK(worker.hello().error().empty());
  CHECK(worker.hello().toolchain().name() == toolchain.name());
  const auto& architectures = worker.hello().toolchain().architectures();
  CHECK(std::ranges::find(architectures, "sm_90") != architectures.end());
}

TEST_CASE("a kernel has the same date whenever it is compiled") {
  const auto request = compile_request(
      "__global__ void k(const char** p) { static const __device__ char t[] = __DATE__ \" \" __TIME__; *p = "
      "t; }\n"
      "static_assert(__DATE__[10] == '0' && __TIME__[7] == '0', \"the date of today\");",
      {"k"});
  WorkerProcess worker(any_toolchain());
  const v1::CompileReply reply = worker.compile(request);
  INFO(reply.log());
  CHECK(reply.outcome() == v1::CORRECT);
  CHECK_THAT(reply.cubin(), Contains("Jan  1 1970 00:00:00"));
}

TEST_CASE("a kernel has no date of its file") {
  WorkerProcess worker(any_toolchain());
  const v1::CompileReply reply = worker.compile(compile_request(
      "__global__ void k(const char** p) { static const __device__ char t[] = __TIMESTAMP__; *p = t; }",
      {"k"}));
  CHECK(reply.outcome() == v1::COMPILE);
  CHECK_THAT(reply.log(), Contains("\"__TIMESTAMP__\" is undefined"));
}

TEST_CASE("a good kernel gives a cubin with lowered names in launch order") {
  WorkerProcess worker(any_toolchain());
  const auto architecture = GENERATE(as<std::string>{}, "sm_80", "sm_90", "sm_90a");
  auto request = scale_request();
  request.set_architecture(architecture);
  const v1::CompileReply reply = worker.compile(request);
  INFO(reply.log());
  REQUIRE(reply.outcome() == v1::CORRECT);
  CHECK(reply.cubin().substr(0, 4) ==
        "\x7f"
        "ELF");
  REQUIRE(reply.entry_symbols_size() == 3);
  CHECK(reply.entry_symbols(0) == "_Z5scaleIfLi128EEvPT_S0_");
  CHECK(reply.entry_symbols(1) == "plain");
  CHECK(reply.entry_symbols(2) == "_Z5scaleIdLi64EEvPT_S0_");
  CHECK(reply.nvrtc_calls() == 1);
  CHECK(reply.compile_ms() > 0);
  CHECK(reply.log() == "");
}

TEST_CASE("the log of a source that is not UTF-8 arrives with the bad bytes replaced") {
  WorkerProcess worker(any_toolchain());
  const v1::CompileReply bad = worker.compile(compile_request("oops;  // caf\xe9\n", {"k"}));
  CHECK(bad.outcome() == v1::COMPILE);
  CHECK_THAT(bad.log(), Contains("caf?"));
  const v1::CompileReply good = worker.compile(
      compile_request("__global__ void k(int* p) { int unused; /* caf\xe9 */ p[0] = 1; }\n", {"k"}));
  CHECK(good.outcome() == v1::CORRECT);
  CHECK_THAT(good.log(), Contains("caf?"));
}

TEST_CASE("registers and static shared memory are those of each entry") {
  WorkerProcess worker(any_toolchain());
  const v1::CompileReply reply = worker.compile(scale_request());
  REQUIRE(reply.resources_size() == 3);
  CHECK(reply.resources(0).entry_symbol() == reply.entry_symbols(0));
  CHECK(reply.resources(0).static_shared_bytes() == 128 * 4);
  CHECK(reply.resources(1).static_shared_bytes() == 0);
  CHECK(reply.resources(2).static_shared_bytes() == 64 * 8);
  for (const v1::EntryResources& resources : reply.resources()) {
    CHECK(resources.registers() >= 4);
    CHECK(resources.spill_store_bytes() == 0);
    CHECK_FALSE(resources.tensor_cores());
  }
}

TEST_CASE("spills and the stack are reported for the entry that has them") {
  WorkerProcess worker(any_toolchain());
  const std::string source = R"(
    __global__ void tight(float* x, int n) {
      float a[96];
      #pragma unroll
      for (int i = 0; i < 96; i++) a[i] = x[i * n + threadIdx.x];
      __syncthreads();
      #pragma unroll
      for (int i = 0; i < 96; i++) x[i] = a[95 - i] + a[i] * a[(i * i) % 96];
    }
    __global__ void easy(float* x) { x[0] = 1; })";
  auto request = compile_request(source, {"easy", "tight"});
  request.add_options("--maxrregcount=32");
  const v1::CompileReply reply = worker.compile(request);
  REQUIRE(reply.resources_size() == 2);
  CHECK(reply.resources(0).spill_store_bytes() == 0);
  CHECK(reply.resources(0).local_bytes() == 0);
  CHECK(reply.resources(1).registers() <= 32);
  CHECK(reply.resources(1).spill_store_bytes() > 0);
  CHECK(reply.resources(1).spill_load_bytes() > 0);
  CHECK(reply.resources(1).local_bytes() > 0);
}

TEST_CASE("tensor cores are seen in the entry that uses them and through a call") {
  WorkerProcess worker(any_toolchain());
  const std::string source = R"(
    __device__ __forceinline__ void step(float* d, const unsigned* a) {
      asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]), "r"(a[5])); }
    __device__ __noinline__ void outlined(float* d, const unsigned* a) { step(d, a); d[7] = 1; }
    __global__ void none(float* d) { d[0] = 1; }
    __global__ void direct(float* d, const unsigned* a) { step(d, a); }
    __global__ void called(float* d, const unsigned* a) { outlined(d, a); })";
  const v1::CompileReply reply = worker.compile(compile_request(source, {"none", "direct", "called"}));
  INFO(reply.log());
  REQUIRE(reply.resources_size() == 3);
  CHECK_FALSE(reply.resources(0).tensor_cores());
  CHECK(reply.resources(1).tensor_cores());
  CHECK(reply.resources(2).tensor_cores());
}

TEST_CASE("the same request gives the same bytes in the same worker and in another one") {
  const Toolchain& toolchain = any_toolchain();
  WorkerProcess first(toolchain);
  WorkerProcess second(toolchain);
  auto request = scale_request();
  request.add_options("-lineinfo");
  const v1::CompileReply reply = first.compile(request);
  REQUIRE(reply.outcome() == v1::CORRECT);
  CHECK(first.compile(request).cubin() == reply.cubin());
  CHECK(second.compile(request).cubin() == reply.cubin());
}

TEST_CASE("the name of the source file changes neither cubin nor symbols") {
  const Toolchain& toolchain = any_toolchain();
  WorkerProcess first(toolchain);
  WorkerProcess second(toolchain);
  auto request = compile_request(kHidden, {"hidden<3>"});
  request.add_options("-lineinfo");
  const v1::CompileReply reply = first.compile(request);
  request.set_source_name("elsewhere/another_name.cu");
  const v1::CompileReply moved = second.compile(request);
  REQUIRE(reply.outcome() == v1::CORRECT);
  CHECK(moved.entry_symbols(0) == reply.entry_symbols(0));
  CHECK(moved.cubin() == reply.cubin());
}

TEST_CASE("internal linkage takes nothing of the process into the cubin") {
  const Toolchain& toolchain = any_toolchain();
  WorkerProcess first(toolchain);
  WorkerProcess second(toolchain);
  const auto request = compile_request(kHidden, {"hidden<3>"});
  const v1::CompileReply reply = first.compile(request);
  REQUIRE(reply.outcome() == v1::CORRECT);
  CHECK(second.compile(request).cubin() == reply.cubin());
}

TEST_CASE("what differs in a name or a macro that nothing reads loads the same code") {
  WorkerProcess worker(any_toolchain());
  const auto code_of = [&](const std::string& entry, const std::string& define,
                           const std::string& architecture) {
    auto request = compile_request(
        "template <int THREADS, int TAG> __global__ void __launch_bounds__(THREADS) k(const float4* x, "
        "float4* y, "
        "int n) { __shared__ float4 row[THREADS]; const int i = blockIdx.x * THREADS + threadIdx.x; if (i < "
        "n) "
        "row[threadIdx.x] = x[i]; __syncthreads(); if (i < n) y[i] = row[THREADS - 1 - threadIdx.x]; }\n"
        "__global__ void other(float* y) { y[threadIdx.x] = 1; }\n",
        {entry});
    request.add_defines(define);
    request.set_architecture(architecture);
    const v1::CompileReply reply = worker.compile(request);
    REQUIRE(reply.outcome() == v1::CORRECT);
    const auto code = loaded_code(reply.cubin(), {reply.entry_symbols(0)});
    REQUIRE(code);
    return *code;
  };
  const std::string architecture = GENERATE("sm_80", "sm_90", "sm_120");
  CAPTURE(architecture);
  const Digest code = code_of("k<128, 1>", "PAD=1", architecture);
  CHECK(code_of("k<128, 1>", "PAD=22", architecture) == code);
  CHECK(code_of("k<128, 23456>", "PAD=1", architecture) == code);
  CHECK(code_of("k<64, 1>", "PAD=1", architecture) != code);
  CHECK(code_of("other", "PAD=1", architecture) != code);
}

TEST_CASE("messages name the source file by its own name") {
  WorkerProcess worker(any_toolchain());
  auto request = compile_request("__global__ void k(int* p) { int unused; *p = WRONG; }", {"k"});
  request.set_source_name("norms/rmsnorm.cu");
  const v1::CompileReply reply = worker.compile(request);
  CHECK_THAT(reply.log(), Contains("norms/rmsnorm.cu(1): error: identifier \"WRONG\" is undefined"));
  CHECK_THAT(reply.log(),
             Contains("in the compilation of \"norms/rmsnorm.cu\"") && !Contains("cubind_kernel"));
  request.add_defines("WRONG=1");
  const v1::CompileReply warned = worker.compile(request);
  CHECK(warned.outcome() == v1::CORRECT);
  CHECK_THAT(warned.log(), Contains("norms/rmsnorm.cu(1): warning"));
}

TEST_CASE("toolkit headers arrive as memory headers with all that they pull in") {
  const Toolchain& toolchain = any_toolchain();
  WorkerProcess worker(toolchain);
  // The headers that mma.h pulls in are in a wheel of their own for CUDA 12.
  const std::string mma = toolchain.read_header("crt/mma.h") ? "#include <mma.h>" : "";
  const std::string source = mma + R"(
    #include <cuda_bf16.h>
    #include <cuda_fp16.h>
    #include <cuda_fp8.h>
    __global__ void k(__nv_bfloat16* x, __half* y) { x[0] = __float2bfloat16(__half2float(y[0])); })";
  const v1::CompileReply reply = worker.compile(compile_request_with_headers(source, {"k"}, toolchain));
  INFO(reply.log());
  CHECK(reply.outcome() == v1::CORRECT);
}

TEST_CASE("a syntax error is the outcome compile with NVRTC's message and the worker goes on") {
  WorkerProcess worker(any_toolchain());
  const v1::CompileReply bad = worker.compile(compile_request("__global__ void k(int* p) { *p = ; }", {"k"}));
  CHECK(bad.outcome() == v1::COMPILE);
  CHECK_THAT(bad.log(), Contains("k.cu(1): error: expected an expression"));
  CHECK(bad.cubin().empty());
  CHECK(bad.nvrtc_calls() == 1);
  CHECK(worker.compile(scale_request()).outcome() == v1::CORRECT);
}

TEST_CASE("the first error of a compiler names the compiler's version") {
  const Toolchain& toolchain = any_toolchain();
  WorkerProcess worker(toolchain);
  const std::string version = " [" + toolchain.name() + "]\n";
  const auto log_of = [&](const std::string& source) {
    return worker.compile(compile_request(source, {"k"})).log();
  };
  const std::string log = log_of("__global__ void k(int* p) { int unused; *p = A + B; }");
  CHECK_THAT(log, Contains("identifier \"A\" is undefined" + version) && Contains("\"B\" is undefined\n"));
  CHECK_THAT(log_of("__global__ void k(float* x) { __shared__ float s[30000]; s[threadIdx.x] = *x; "
                    "__syncthreads(); *x = s[threadIdx.x + 1]; }"),
             Contains(version));
  CHECK_THAT(log_of("template <class T> concept whole = true;"),
             Contains("(C++20 has it: set --std=c++20 in \"options\")" + version));
}

TEST_CASE("a refusal of ptxas is reported in its own words") {
  WorkerProcess worker(any_toolchain());
  const v1::CompileReply reply = worker.compile(
      compile_request("__global__ void k(float* x) { __shared__ float s[30000]; s[threadIdx.x] = "
                      "*x; __syncthreads(); *x = s[threadIdx.x + 1]; }",
                      {"k"}));
  CHECK(reply.outcome() == v1::COMPILE);
  CHECK_THAT(reply.log(), Contains("uses too much shared data") && !Contains("ptxas info"));
}

TEST_CASE("for a missing file the message says where it was looked for") {
  WorkerProcess worker(any_toolchain());
  const v1::CompileReply reply = worker.compile(compile_request("#include <torch/extension.h>\n", {"k"}));
  CHECK(reply.outcome() == v1::COMPILE);
  CHECK_THAT(reply.log(),
             Contains("could not open source file \"torch/extension.h\" (not in the spec's folder, its "
                      "\"headers\" or the CUDA toolkit; put headers of host code between"));
}

TEST_CASE("for a header of the toolkit that is missing the message names the package that brings it") {
  WorkerProcess worker(any_toolchain());
  const v1::CompileReply reply = worker.compile(compile_request("#include <cuda/std/limits>\n", {"k"}));
  CHECK(reply.outcome() == v1::COMPILE);
  CHECK_THAT(reply.log(), Contains("`pip install 'nvidia-cuda-cccl"));
}

TEST_CASE("for what is not declared the message names the header or says that it is host code") {
  WorkerProcess worker(any_toolchain());
  const auto log_of = [&](const std::string& text) {
    return worker.compile(compile_request(text + " __global__ void k(float* x) { *x = -INFINITY; }", {"k"}))
        .log();
  };
  CHECK_THAT(log_of(""), Contains("identifier \"INFINITY\" is undefined (<cmath> has it)"));
  CHECK_THAT(log_of("void f() { cudaMallocHost(nullptr, 1); }"),
             Contains("\"cudaMallocHost\" is undefined (put host code between"));
  CHECK_THAT(log_of("__device__ void f() { cudaGridDependencySynchronize(); }"),
             Contains("(NVRTC has no CUDA runtime for device code: for sm_90 and later write asm volatile("));
  CHECK_THAT(log_of("void f() {}"),
             Contains("process unannotated functions as __device__ functions in JIT mode (put "
                      "host code"));
  CHECK_THAT(log_of("using std::optional;"), Contains("has no member \"optional\" (of the standard library"));
}

TEST_CASE("a worker keeps a set of headers for requests that name it and no others") {
  WorkerProcess worker(any_toolchain());
  auto request = compile_request("#include \"a.h\"\n__global__ void k(int* p) { *p = A; }", {"k"});
  CHECK(worker.compile(request).outcome() == v1::COMPILE);
  request.mutable_header_set()->set_digest("one");
  v1::SourceFile& header = *request.mutable_header_set()->add_files();
  header.set_path("a.h");
  header.set_content("#define A 1");
  CHECK(worker.compile(request).outcome() == v1::CORRECT);
  request.mutable_header_set()->clear_files();
  CHECK(worker.compile(request).outcome() == v1::CORRECT);
  request.mutable_header_set()->set_digest("two");
  CHECK_THAT(worker.compile(request).log(), Contains("not the set that this worker keeps"));
  request.clear_header_set();
  CHECK_THAT(worker.compile(request).log(), Contains("could not open source file \"a.h\""));
}

TEST_CASE("a header that the compiler would not take is named at each compile of its set") {
  WorkerProcess worker(any_toolchain());
  auto request = compile_request("__global__ void k(int* p) { *p = 1; }", {"k"});
  request.mutable_header_set()->set_digest("one");
  v1::SourceFile& header = *request.mutable_header_set()->add_files();
  header.set_path("a.h");
  header.set_content(std::string("#define A 1\0", 12));
  CHECK_THAT(worker.compile(request).log(), Contains("a.h") && Contains("a zero byte"));
  request.mutable_header_set()->clear_files();
  CHECK_THAT(worker.compile(request).log(), Contains("a.h") && Contains("a zero byte"));
  request.clear_header_set();
  CHECK(worker.compile(request).outcome() == v1::CORRECT);
}

TEST_CASE("an entry that the source does not have is reported as an entry") {
  WorkerProcess worker(any_toolchain());
  const std::string source =
      "__global__ void k() {}\ntemplate <int N> __global__ void __launch_bounds__(64, 2) more (int*);\n"
      "__global__ void k();\n";
  const v1::CompileReply reply = worker.compile(compile_request(source, {"kk<2>"}));
  CHECK(reply.outcome() == v1::COMPILE);
  CHECK_THAT(reply.log(), StartsWith("name of an entry: error: identifier \"kk\" is undefined") &&
                              !Contains("__nv_name_map") && Catch::EndsWith("has the kernels k, more"));
}

TEST_CASE("an entry that is no kernel is named") {
  WorkerProcess worker(any_toolchain());
  const std::string source =
      "__device__ int f(int a) { return a; } __global__ void k(int* p) { *p = f(*p); }";
  const v1::CompileReply reply = worker.compile(compile_request(source, {"k", "f"}));
  CHECK(reply.outcome() == v1::COMPILE);
  CHECK_THAT(reply.log(), Contains("non-__global__ function") && Contains("f"));
  CHECK_THAT(worker.compile(compile_request(source, {"missing<3>"})).log(), Contains("missing"));
}

TEST_CASE("a cubin above its cap is refused and a long log is cut") {
  WorkerProcess worker(any_toolchain());
  auto request = scale_request();
  request.set_max_cubin_bytes(1000);
  const v1::CompileReply large = worker.compile(request);
  CHECK(large.outcome() == v1::COMPILE);
  CHECK_THAT(large.log(), Contains("it may have 1 to 1000"));
  CHECK(large.entry_symbols_size() == 0);
  auto noisy = compile_request("#error " + std::string(5000, 'x'), {"k"});
  noisy.set_max_log_bytes(100);
  const v1::CompileReply reply = worker.compile(noisy);
  CHECK(reply.log().size() < 200);
  CHECK_THAT(reply.log(), Contains("the log is longer than 100 bytes"));
}

TEST_CASE("a warning is in the log of a good compile and what ptxas reports is not") {
  WorkerProcess worker(any_toolchain());
  const v1::CompileReply reply =
      worker.compile(compile_request("__global__ void k(int* p) { int unused; *p = 1; }", {"k"}));
  CHECK(reply.outcome() == v1::CORRECT);
  CHECK_THAT(reply.log(), Contains("unused"));
  CHECK_THAT(reply.log(), !Contains("ptxas"));
}

TEST_CASE("an option outside the list is refused by the worker as well") {
  WorkerProcess worker(any_toolchain());
  for (const char* option :
       {"--include-path=/etc", "-I/etc", "--pre-include=/etc/passwd", "--time=/tmp/x", "--device-c"}) {
    auto request = scale_request();
    request.add_options(option);
    const v1::CompileReply reply = worker.compile(request);
    CHECK(reply.outcome() == v1::COMPILE);
    CHECK_THAT(reply.log(), Contains("options/0: the option \"" + std::string(option) + "\" is not allowed"));
    CHECK(reply.nvrtc_calls() == 0);
  }
}

TEST_CASE("a broken request is an answer with the field's name") {
  WorkerProcess worker(any_toolchain());
  auto request = scale_request();
  request.set_architecture("compute_90");
  CHECK_THAT(worker.compile(request).log(), Contains("architecture:"));
  request = scale_request();
  request.add_entries("k>\n#include \"/etc/passwd\"");
  CHECK_THAT(worker.compile(request).log(), Contains("entries[3]:"));
  request = scale_request();
  request.add_defines("A=1\n#include \"/etc/passwd\"");
  CHECK_THAT(worker.compile(request).log(), Contains("defines[1]:"));
  CHECK_THAT(worker.compile(compile_request("int a;", {})).log(), Contains("entries:"));
  CHECK_THAT(worker.compile(compile_request(std::string("a\0b", 3), {"k"})).log(), Contains("zero byte"));
}

TEST_CASE("the builtins are opened first so that a library opened by path finds them") {
  const Toolchain& toolchain = any_toolchain();
  const WorkerProcess wrong(toolchain.nvrtc.string(), toolchain.nvrtc.string() + ".builtins");
  CHECK_THAT(wrong.hello().error(), Contains(toolchain.nvrtc.string() + ".builtins"));
  const WorkerProcess good(toolchain);
  CHECK(good.hello().error().empty());  // the first compile went through
}

TEST_CASE("a library that is no NVRTC is named in the hello") {
  const Toolchain& toolchain = any_toolchain();
  const WorkerProcess worker(toolchain.builtins.string(), toolchain.builtins.string());
  CHECK_THAT(worker.hello().error(), Contains("nvrtc") && Contains("missing"));
}

TEST_CASE("the worker ends when the parent closes the socket") {
  WorkerProcess worker(any_toolchain());
  CHECK(worker.finish().code == 0);
}

}  // namespace cubind::test
