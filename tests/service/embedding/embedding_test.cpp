// A project outside of the tree, as docs/client.md writes it.
#include <catch2/catch.hpp>
#include <cstdlib>

#include "base/file.hpp"
#include "tests/fakes/program_run.hpp"
#include "tests/support/docs.hpp"
#include "tests/support/paths.hpp"

namespace cubind::test {
namespace {

namespace fs = std::filesystem;

/// Unchanged where it is the same: then nothing is built again.
void write(const fs::path& file, const std::string& content) {
  if (!fs::exists(file) || read_file(file) != content) {
    write_file_atomic(file, content);
  }
}

ProgramResult run(const std::string& program, std::vector<std::string> arguments) {
  ProgramRun run;
  run.program = program;
  run.arguments = std::move(arguments);
  run.environment = {"CUBIND_ADDRESS=unix:///nowhere/cubind.sock"};
  for (const char* name : {"PATH", "HOME", "CCACHE_DIR"}) {
    if (const char* value = std::getenv(name)) {
      run.environment.push_back(std::string(name) + "=" + value);
    }
  }
  run.limit = std::chrono::minutes(28);
  return run_program(run);
}

}  // namespace

TEST_CASE("another project adds the checkout and links the client as docs/client.md says") {
  const std::string heading = "## In a project of your own", path = "/path/to/cubind";
  const fs::path folder = CUBIND_EMBEDDING_DIR, build = folder / "build";
  create_folders(folder);
  std::string lists = code_block("client.md", heading, "cmake");
  lists.replace(lists.find(path), path.size(), source_dir().string());
  write(folder / "CMakeLists.txt", lists);
  write(folder / "main.cpp", code_block("client.md", heading, "cpp"));
  const ProgramResult configured = run(CUBIND_CMAKE, {"-S", folder, "-B", build, "-G", CUBIND_GENERATOR,
                                                      std::string("-DCMAKE_CXX_COMPILER=") + CUBIND_CXX});
  INFO(configured.err);
  REQUIRE(configured.exit_code == 0);
  const ProgramResult built = run(CUBIND_CMAKE, {"--build", build, "--parallel", "2"});
  INFO(built.out);
  REQUIRE(built.exit_code == 0);
  const ProgramResult result = run(build / "my_job", {});
  CHECK(result.exit_code == 1);
  CHECK_THAT(result.err, Catch::Contains("no daemon answers there"));
}

}  // namespace cubind::test
