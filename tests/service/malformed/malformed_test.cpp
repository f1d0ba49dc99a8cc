// Malformed specs, shape lists, tables and requests against one real daemon: each is refused at its place
// with its cause, and none disturbs a later answer.
#include <catch2/catch.hpp>
#include <set>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/json.hpp"
#include "tests/fakes/program_run.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/tiny_daemon.hpp"
#include "tuner/plan/wire.hpp"

namespace cubind::test {
namespace {

struct Case {
  std::string name;
  std::string where;  // file and pointer, or field path
  std::string cause;
};

std::filesystem::path golden() { return source_dir() / "tests/golden/malformed"; }

// A manifest beside the folder of its files: specs.json and specs/.
std::vector<Case> cases_of(const std::string& kind) {
  const std::filesystem::path manifest = golden() / (kind + ".json");
  std::vector<Case> cases;
  for (const Json& entry : Json::parse(read_file(manifest))) {
    cases.push_back({(golden() / kind / entry.at("file")).string(), entry.at("where"), entry.at("cause")});
  }
  return cases;
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

void check_message(Shared& shared, const Case& input, const std::string& message) {
  INFO(input.name << ": " << message);
  const std::size_t place = message.find(input.where);
  CHECK(place != std::string::npos);
  CHECK(message.find(input.cause, place == std::string::npos ? 0 : place) != std::string::npos);
  shared.causes.insert(input.cause);
  ++shared.inputs;
}

// The place of a file is its name with the pointer.
void check_file(Shared& shared, const Case& input, std::vector<std::string> arguments) {
  arguments.push_back(input.name);
  const ProgramResult result = ctl(shared, std::move(arguments));
  INFO(input.name);
  CHECK(result.exit_code == 2);
  CHECK(result.out.empty());
  check_message(shared, input, result.err);
}

struct Request {
  Case expected;
  std::function<void(const Connection&)> call;
};

v1::GetVariantRequest tiny_question(const Connection& connection) {
  return question(connection, tiny_problem(2));
}

template <typename Spoil>
Request get(const std::string& where, const std::string& cause, Spoil spoil) {
  return {{"GetVariant " + where, where, cause}, [spoil](const Connection& connection) {
            v1::GetVariantRequest request = tiny_question(connection);
            spoil(request);
            connection.get_variant(request, kPatience);
          }};
}

template <typename Spoil>
Request tuning(const std::string& where, const std::string& cause, Spoil spoil) {
  return {{"Tune " + where, where, cause}, [spoil](const Connection& connection) {
            v1::TuneRequest request = tune_request({tiny_problem(2)});
            spoil(request);
            connection.tune(
                request, [](const v1::TuneEvent&) {}, {}, kPatience);
          }};
}

std::vector<Request> malformed_requests() {
  using Get = v1::GetVariantRequest;
  using Tune = v1::TuneRequest;
  const auto dim = [](auto& request, int i) { return request.mutable_problem()->mutable_dims(i); };
  return {
      get("kernel", "is empty", [](Get& r) { r.clear_kernel(); }),
      get("problem.dims[0].value", "-4", [dim](Get& r) { dim(r, 0)->set_value(-4); }),
      get("problem.dims[1].name", "twice", [dim](Get& r) { dim(r, 1)->set_name("N"); }),
      get("problem.dims", "missing", [](Get& r) { r.mutable_problem()->clear_dims(); }),
      get("problem.types[0].type", "fp12",
          [](Get& r) { r.mutable_problem()->mutable_types(0)->set_type("fp12"); }),
      get("problem.types[0].type", "i8",
          [](Get& r) { r.mutable_problem()->mutable_types(0)->set_type("i8"); }),
      get("problem.flags[0].name", "CAUSAL",
          [](Get& r) { r.mutable_problem()->add_flags()->set_name("CAUSAL"); }),
      get("device", "give facts or a label", [](Get& r) { r.clear_device(); }),
      get("device.facts.sm_count", "missing",
          [](Get& r) { r.mutable_device()->mutable_facts()->set_sm_count(0); }),
      get("accept", "restrict_accept", [](Get& r) { r.add_accept(v1::BUCKET); }),
      get("have_artifacts[0]", "32", [](Get& r) { r.add_have_artifacts("abc"); }),
      get("on_miss", "7", [](Get& r) { r.set_on_miss(static_cast<v1::OnMiss>(7)); }),
      get("compile_wait_ms", "60000", [](Get& r) { r.set_compile_wait_ms(3'600'000); }),
      tuning("problems", "at least", [](Tune& r) { r.clear_problems(); }),
      tuning("problems[1].dims[0].value", "-1",
             [](Tune& r) {
               *r.add_problems() = r.problems(0);
               r.mutable_problems(1)->mutable_dims(0)->set_value(-1);
             }),
      tuning("policy", "9", [](Tune& r) { r.mutable_policy()->set_flush_method(9); }),
  };
}

void check_requests(Shared& shared) {
  for (const Request& request : malformed_requests()) {
    INFO(request.expected.name);
    try {
      request.call(shared.connection);
      FAIL("it was accepted");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::InvalidArgument);
      check_message(shared, request.expected, error.what());
    }
  }
}

}  // namespace

TEST_CASE(
    "malformed specs and shape lists and tables and requests are refused with place and cause and disturb "
    "nothing") {
  Shared shared;
  const std::vector<Case> specs = cases_of("specs"), shapes = cases_of("shapes"), tables = cases_of("tables");
  for (const Case& input : specs) {
    check_file(shared, input, {"kernels", "check"});
  }
  for (const Case& input : shapes) {
    check_file(shared, input, {"tune", kTinyKernel, "--shapes"});
  }
  for (const Case& input : tables) {
    check_file(shared, input, {"import"});
  }
  check_requests(shared);
  CHECK(std::min({specs.size(), shapes.size(), tables.size(), malformed_requests().size()}) >= 10);
  CHECK(shared.inputs >= 50);
  CHECK(shared.causes.size() >= 25);
  CHECK(shared.known_answer() == shared.before);
}

TEST_CASE("the table that the malformed ones were made from is accepted") {
  Shared shared;
  CHECK(ctl(shared, {"import", (golden() / "valid_table.json").string()}).exit_code == 0);
}

}  // namespace cubind::test
