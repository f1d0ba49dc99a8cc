// The installed library as projects in C and C++ find it, with CMake and with pkg-config.
#include <catch2/catch.hpp>
#include <cstdlib>

#include "base/file.hpp"
#include "plan/wire.hpp"
#include "tests/fakes/fake_daemon.hpp"
#include "tests/fakes/program_run.hpp"
#include "tests/fakes/sample_reply.hpp"
#include "tests/support/docs.hpp"
#include "tests/support/paths.hpp"

namespace cubind::test {
namespace {

namespace fs = std::filesystem;

const std::string kHeading = "## From C";

// A prefix with the library, and a project of its own next to it. Both go with the fixture.
class Project {
 public:
  Project() : folder_(make_temporary()) {
    succeed(CUBIND_CMAKE, {"--install", CUBIND_BUILD_DIR, "--prefix", prefix(), "--component", "library"});
    fs::create_directories(source());
    for (const char* program : {"scale.c", "scale.cpp"}) {
      fs::copy(source_dir() / "tests/service/client_c/programs" / program, source());
    }
    write_file_atomic(source() / "main.c", code_block("client.md", kHeading, "c"));
    daemon_.scripts.get_variant = [](const v1::GetVariantRequest& request) {
      Problem asked = problem_from_wire(request.problem(), "problem");
      return sample_reply(
          {{{"N", asked.dim("N").value()}, {"D", asked.dim("D").value()}}, asked.types, {}, ""},
          "\x7f"
          "ELF and so on");
    };
  }
  ~Project() { fs::remove_all(folder_); }
  Project(const Project&) = delete;
  Project& operator=(const Project&) = delete;

  fs::path prefix() const { return folder_ / "prefix"; }
  fs::path source() const { return folder_ / "project"; }

  void succeed(const std::string& program, std::vector<std::string> arguments) const {
    const ProgramResult result = run(program, std::move(arguments));
    INFO(program << "\n" << result.out << result.err);
    REQUIRE(result.exit_code == 0);
  }

  ProgramResult run(const std::string& program, std::vector<std::string> arguments) const {
    ProgramRun run;
    run.program = program;
    run.arguments = std::move(arguments);
    run.environment = {"CUBIND_ADDRESS=" + daemon_.address(), "CMAKE_PREFIX_PATH=" + prefix().string(),
                       "PKG_CONFIG_PATH=" + (prefix() / "lib/pkgconfig").string(),
                       std::string("CC=") + CUBIND_CC, std::string("CXX=") + CUBIND_CXX};
    for (const char* name : {"PATH", "HOME", "LD_LIBRARY_PATH"}) {
      if (const char* value = std::getenv(name)) {
        run.environment.push_back(std::string(name) + "=" + value);
      }
    }
    run.limit = std::chrono::minutes(2);
    return run_program(run);
  }

  // The three programs do what they say, with the prefix that they were built for moved nowhere.
  void check_programs(const fs::path& bin) const {
    const ProgramResult in_c = run(bin / "scale_c", {});
    CHECK(in_c.err.empty());
    CHECK(in_c.exit_code == 0);
    CHECK(in_c.out == "N=1024,D=4096,T=f16 THREADS=256,VECTOR=4 _Z6finish grid 1024 x 2\n");
    const ProgramResult in_cpp = run(bin / "scale_cpp", {});
    CHECK(in_cpp.out == "exact with 4 arguments\n");
    CHECK(in_cpp.exit_code == 1);
    CHECK_THAT(in_cpp.err, Catch::Contains("INVALID_ARGUMENT: argument x: is missing"));
    const ProgramResult of_the_page = run(bin / "my_job", {});
    CHECK(of_the_page.exit_code == 1);
    CHECK_THAT(of_the_page.err, Catch::Contains("asked for rmsnorm_forward"));
  }

 private:
  static fs::path make_temporary() {
    std::string name = (fs::temp_directory_path() / "cubind-test.XXXXXX").string();
    return mkdtemp(name.data());
  }

  fs::path folder_;
  FakeDaemon daemon_;
};

}  // namespace

TEST_CASE("find_package gives projects in C and C++ the library") {
  const Project project;
  const std::string more =
      "add_executable(scale_c scale.c)\nadd_executable(scale_cpp scale.cpp)\n"
      "set_target_properties(scale_cpp PROPERTIES CXX_STANDARD 17)\n"
      "target_link_libraries(scale_c PRIVATE cubind::cubind)\ntarget_link_libraries(scale_cpp PRIVATE "
      "cubind::cubind)\n";
  write_file_atomic(project.source() / "CMakeLists.txt", code_block("client.md", kHeading, "cmake") + more);
  const fs::path build = project.source() / "build";
  project.succeed(CUBIND_CMAKE, {"-S", project.source(), "-B", build, "-G", CUBIND_GENERATOR});
  project.succeed(CUBIND_CMAKE, {"--build", build});
  project.check_programs(build);
}

TEST_CASE("pkg-config gives compilers of C and C++ the library") {
  const Project project;
  const std::string of_the_page = code_block("client.md", kHeading, "sh");
  const std::string flags =
      " $(pkg-config --cflags --libs cubind) -Wl,-rpath,$(pkg-config --variable=libdir cubind)\n";
  const std::string script = "set -eu\ncd " + project.source().string() + "\n" + of_the_page +
                             "$CC -std=c99 -Wall -Wextra -Wpedantic -Werror scale.c -o scale_c" + flags +
                             "$CXX -std=c++17 -Wall -Wextra -Wpedantic -Werror scale.cpp -o scale_cpp" +
                             flags;
  project.succeed("/bin/sh", {"-c", script});
  project.check_programs(project.source());
}

TEST_CASE("the library shows the functions of its header alone") {
  const Project project;
  const ProgramResult shown = project.run(
      "/bin/sh", {"-c", "nm -D --defined-only " + (project.prefix() / "lib/libcubind.so").string()});
  REQUIRE(shown.exit_code == 0);
  const std::string header = read_file(source_dir() / "client/c/cubind.h");
  std::istringstream lines(shown.out);
  std::size_t functions = 0;
  for (std::string address, kind, name; lines >> address >> kind >> name; ++functions) {
    INFO(name);
    CHECK(header.find(" " + name + "(") != std::string::npos);
  }
  std::size_t declared = 0;
  for (std::size_t at = 0; (at = header.find("\nCUBIND_API ", at)) != std::string::npos; ++at) {
    ++declared;
  }
  CHECK(functions == declared);
}

}  // namespace cubind::test
