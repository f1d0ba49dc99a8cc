// client/python/query.py as README runs it.
#include <catch2/catch.hpp>

#include "base/digest.hpp"
#include "base/file.hpp"
#include "base/json.hpp"
#include "tests/fakes/program_run.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/tiny_daemon.hpp"

namespace cubind::test {
namespace {

std::string python() { return (source_dir() / ".deps/venv/bin/python").string(); }

// Stubs in a folder of their own.
class Stubs {
 public:
  Stubs() {
    const std::string out = folder_.path().string();
    const ProgramResult result = run_program(
        {.program = python(),
         .arguments = {"-m", "grpc_tools.protoc", "-I", source_dir().string(), "--python_out=" + out,
                       "--grpc_python_out=" + out, (source_dir() / "schemas/cubind.proto").string()},
         .environment = {},
         .until = {},
         .then = {}});
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
  }

  ProgramResult query(const Daemon& daemon, std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), (source_dir() / "client/python/query.py").string());
    return run_program({.program = python(),
                        .arguments = std::move(arguments),
                        .environment = {"PYTHONPATH=" + folder_.path().string(),
                                        "CUBIND_ADDRESS=" + daemon.address(), "PYTHONDONTWRITEBYTECODE=1"},
                        .until = {},
                        .then = {}});
  }

 private:
  TempDir folder_;
};

}  // namespace

TEST_CASE("the query from Python writes the cubin that the daemon promised and prints the launch plan") {
  TinyDaemon daemon;
  const Connection connection = daemon->connect();
  tune(connection, {tiny_problem(2)});
  const Stubs stubs;
  const std::string file = (daemon.folder() / "k.cubin").string();
  const ProgramResult result = stubs.query(
      *daemon, {kTinyKernel, "N=4096,K=2,T=f32", "--device", offered_device(connection).label(), "-o", file});
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  const Json json = Json::parse(result.out);
  CHECK(json["match"] == "exact");
  CHECK(json["evidence"] == "replayed");
  CHECK(json["time_us"] > 0);
  REQUIRE(json["launches"].size() == 1);
  std::map<std::string, std::string> roles;
  for (const Json& parameter : json["launches"][0]["parameters"]) {
    if (parameter.contains("role")) {
      roles[parameter["name"]] = parameter["role"];
    }
  }
  CHECK(roles == std::map<std::string, std::string>{{"x", "in"}, {"y", "out"}});
  const v1::GetVariantReply reply = connection.get_variant(question(connection, tiny_problem(2)), kPatience);
  CHECK(Digest::of(read_file(file)).view() == reply.artifact().digest());
}

TEST_CASE("the query from Python prints no time where nothing was measured and says why") {
  TinyDaemon daemon;
  const Connection connection = daemon->connect();
  const Problem not_recorded = parse_problem("N=128,K=2,T=f32");
  REQUIRE(tune(connection, {not_recorded}).at(0).job().state() == v1::Job::FAILED);
  const ProgramResult result = Stubs().query(
      *daemon, {kTinyKernel, to_string(not_recorded), "--device", offered_device(connection).label()});
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  const Json json = Json::parse(result.out);
  CHECK(json["match"] == "default");
  CHECK_FALSE(json.contains("time_us"));
  CHECK_THAT(json.value("why", ""), Catch::Contains("no recording of"));
}

TEST_CASE("the query from Python tells what the daemon refuses and ends with 1") {
  TinyDaemon daemon;
  const Stubs stubs;
  const ProgramResult result = stubs.query(*daemon, {"no_such_kernel", "N=1", "--device", "nvidia-h200"});
  CHECK(result.exit_code == 1);
  CHECK_THAT(result.err, Catch::Contains("NOT_FOUND"));
}

}  // namespace cubind::test
