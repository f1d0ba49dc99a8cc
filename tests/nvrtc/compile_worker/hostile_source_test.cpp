#include <catch2/catch.hpp>
#include <fstream>

#include "base/file.hpp"
#include "tests/nvrtc/compile_worker/any_toolchain.hpp"
#include "tests/nvrtc/compile_worker/worker_process.hpp"
#include "tests/nvrtc/toolchains/toolchains.hpp"

using Catch::Matchers::Contains;

namespace cubind::test {
namespace {

constexpr char kKernel[] = "\n__global__ void k(int* p) { *p = 1; }\n";
constexpr char kSecret[] = "the_secret_of_the_host";

// A file of the host that anyone may read, with a word in it that must not come out.
class HostFile {
 public:
  HostFile() {
    std::ofstream(path()) << kSecret << ";\n";
    std::filesystem::permissions(folder_.path(), std::filesystem::perms(0755));
  }
  std::string path() const { return (folder_.path() / "secret.h").string(); }

 private:
  TempDir folder_;
};

void check_no_leak(const v1::CompileReply& reply) {
  CHECK(reply.log().find(kSecret) == std::string::npos);
  CHECK(reply.cubin().find(kSecret) == std::string::npos);
}

}  // namespace

TEST_CASE("an absolute include in plain sight is refused before NVRTC sees it") {
  WorkerProcess worker(any_toolchain());
  const HostFile file;
  for (const std::string& include :
       {"#include \"" + file.path() + "\"", "#include <" + file.path() + ">",
        "%:include \"" + file.path() + "\"", "#inc\\\nlude \"" + file.path() + "\"",
        "#include_next \"" + file.path() + "\"", "#if __has_include(\"" + file.path() + "\")\n#endif",
        "#embed \"" + file.path() + "\""}) {
    const v1::CompileReply reply = worker.compile(compile_request(include + kKernel, {"k"}));
    CHECK(reply.outcome() == v1::COMPILE);
    CHECK_THAT(reply.log(), Contains("absolute path \"" + file.path()));
    CHECK(reply.nvrtc_calls() == 0);
  }
}

TEST_CASE("a define that names a host file opens none") {
  WorkerProcess worker(any_toolchain());
  const HostFile file;
  auto request = compile_request(std::string("#include H") + kKernel, {"k"});
  request.add_defines("H=\"" + file.path() + "\"");
  const v1::CompileReply reply = worker.compile(request);
  CHECK(reply.outcome() == v1::COMPILE);
  CHECK_THAT(reply.log(), Contains("open source file"));
  check_no_leak(reply);
}

TEST_CASE("a header can include no host file either") {
  WorkerProcess worker(any_toolchain());
  const HostFile file;
  auto request = compile_request(std::string("#include \"a.h\"") + kKernel, {"k"});
  v1::SourceFile& header = *request.add_headers();
  header.set_path("a.h");
  header.set_content("#define H \"" + file.path() + "\"\n#include H\n");
  check_no_leak(worker.compile(request));
  header.set_content("#include \"" + file.path() + "\"\n");
  CHECK_THAT(worker.compile(request).log(), Contains("a.h:1: #include of the absolute path"));
}

TEST_CASE("the worker holds no descriptor but its socket and the standard streams") {
  const WorkerProcess worker(any_toolchain());
  const std::filesystem::directory_iterator fds("/proc/" + std::to_string(worker.pid()) + "/fd");
  CHECK(std::distance(begin(fds), end(fds)) == 4);
  std::ifstream limits("/proc/" + std::to_string(worker.pid()) + "/limits");
  const std::string text(std::istreambuf_iterator<char>(limits), {});
  CHECK_THAT(text, Catch::Matchers::Matches("[^]*Max open files +8 +8 [^]*"));
  CHECK_THAT(text, Catch::Matchers::Matches("[^]*Max file size +603979776 +603979776 [^]*"));
  CHECK_THAT(text, Catch::Matchers::Matches("[^]*Max core file size +0 +0 [^]*"));
}

TEST_CASE("the worker's environment is empty") {
  const WorkerProcess worker(any_toolchain());
  std::ifstream environment("/proc/" + std::to_string(worker.pid()) + "/environ");
  CHECK(std::string(std::istreambuf_iterator<char>(environment), {}).empty());
}

}  // namespace cubind::test
