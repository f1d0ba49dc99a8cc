// Malformed specs, shape lists and tables, through cubindctl against one real daemon: each is refused at its
// place with its cause, and none disturbs a later answer.
#include <catch2/catch.hpp>
#include <set>

#include "base/file.hpp"
#include "base/json.hpp"
#include "tests/fakes/program_run.hpp"
#include "tests/support/malformed.hpp"
#include "tests/support/tiny_daemon.hpp"

namespace cubind::test {
namespace {

std::filesystem::path golden() { return source_dir() / "tests/golden/malformed"; }

std::vector<MalformedFile> write_shape_lists(const std::filesystem::path& folder) {
  std::vector<MalformedFile> files;
  for (const Json& entry : Json::parse(read_file(golden() / "shapes.json"))) {
    const std::filesystem::path path = folder / entry.at("file").get<std::string>();
    write_file_atomic(path, entry.at("text").get<std::string>());
    files.push_back({path.string(), entry.at("where"), entry.at("cause")});
  }
  return files;
}

// One daemon for all: it has to survive each input.
struct Shared {
  TinyDaemon daemon;
  Connection connection = daemon->connect();
  std::string before;
  std::set<std::string> causes;
  std::size_t inputs = 0;

  Shared() {
    tune(connection, {tiny_problem(2)});
    before = known_answer();
  }
  std::string known_answer() const {
    return connection.get_variant(question(connection, tiny_problem(2)), kPatience).SerializeAsString();
  }
};

ProgramResult ctl(Shared& shared, std::vector<std::string> arguments) {
  ProgramRun run;
  run.program = "cubindctl";
  run.arguments = std::move(arguments);
  run.environment = {"CUBIND_ADDRESS=" + shared.daemon->address()};
  return run_program(run);
}

// The place of a file is its name with the pointer.
void check_file(Shared& shared, const MalformedFile& input, std::vector<std::string> arguments) {
  arguments.push_back(input.path);
  const ProgramResult result = ctl(shared, std::move(arguments));
  INFO(input.path << ": " << result.err);
  CHECK(result.exit_code == 2);
  CHECK(result.out.empty());
  // A cause that the place itself has words of says nothing.
  const std::string file = std::filesystem::path(input.path).filename();
  const std::string& where = input.where.empty() ? file : input.where;
  const std::size_t at = result.err.find(where);
  REQUIRE(at != std::string::npos);
  CHECK(result.err.find(input.cause, at + where.size()) != std::string::npos);
  shared.causes.insert(input.cause);
  ++shared.inputs;
}

}  // namespace

TEST_CASE("malformed specs and shape lists and tables are refused with place and cause and disturb nothing") {
  Shared shared;
  const TempDir spec_folder, shape_folder, table_folder;
  const auto specs = write_malformed("specs", spec_folder.path()),
             shapes = write_shape_lists(shape_folder.path()),
             tables = write_malformed("tables", table_folder.path());
  for (const MalformedFile& input : specs) {
    check_file(shared, input, {"kernels", "check"});
  }
  for (const MalformedFile& input : shapes) {
    check_file(shared, input, {"tune", kTinyKernel, "--shapes"});
  }
  for (const MalformedFile& input : tables) {
    check_file(shared, input, {"import"});
  }
  CHECK(std::min({specs.size(), shapes.size(), tables.size()}) >= 10);
  CHECK(shared.inputs >= 50);
  CHECK(shared.causes.size() >= 25);
  CHECK(shared.known_answer() == shared.before);
}

TEST_CASE("the table that the malformed ones were made from is accepted") {
  Shared shared;
  CHECK(ctl(shared, {"import", (golden() / "tables/valid.json").string()}).exit_code == 0);
}

}  // namespace cubind::test
