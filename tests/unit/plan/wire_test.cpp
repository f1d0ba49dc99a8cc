#include "plan/wire.hpp"

#include <catch2/catch.hpp>

#include "plan/answer_wire.hpp"
#include "tests/support/refusal_of.hpp"

namespace cubind::test {

namespace {

Launch launch() {
  Launch result{"scale<float>", "_Z5scale", {1, 2, 3}, {4, 5, 6}, 7, {}};
  for (const Role role : {Role::In, Role::Out, Role::InOut, Role::Zero, Role::Scratch}) {
    result.parameters.push_back({"b", ParameterSource::Buffer, DType::Bf16, role, 64, 16, 0, {4, 8}});
  }
  result.parameters.push_back({"n", ParameterSource::Value, DType::I64, Role::None, 0, 0, -3});
  result.parameters.push_back({"alpha", ParameterSource::Caller, DType::F32, Role::None, 0, 0, 0});
  result.parameters.push_back({"filter",
                               ParameterSource::Symbol,
                               DType::F32,
                               Role::In,
                               36,
                               16,
                               0,
                               {9},
                               "filter<float>",
                               "_Z6filterIfE"});
  result.parameters.push_back({"x", ParameterSource::TensorMap, DType::Bf16, Role::In, 8192, 16});
  result.parameters.back().tensor_map = {
      "x_map", TensorMapType::Tf32, true, 2, {64, 32}, {256}, {32, 8}, {1, 2}, 128, 16, 256};
  result.cluster = Dim3{1, 2, 1};
  result.attributes = {true, true, -3};
  return result;
}

}  // namespace

TEST_CASE("a problem survives the wire whole") {
  const Problem problem{{{"N", -4}, {"D", 8}}, {{"T", DType::E4m3}}, {{"CAUSAL", 1}}, "skewed"};
  v1::Problem message;
  to_wire(problem, message);
  CHECK(problem_from_wire(message, "problem") == problem);
}

TEST_CASE("a problem's types are accepted in any spelling and refused by their field") {
  v1::Problem message;
  v1::TypeBinding& type = *message.add_types();
  type.set_name("T");
  type.set_type("torch.bfloat16");
  CHECK(problem_from_wire(message, "problem").type("T") == DType::Bf16);
  type.set_type("fp12");
  CHECK_THAT(refusal_of([&] { problem_from_wire(message, "problem"); }),
             Catch::StartsWith("problem.types[0].type: \"fp12\" is not a type"));
}

TEST_CASE("a name that is empty or given twice is refused by its field") {
  v1::Problem message;
  message.add_dims()->set_name("N");
  message.add_dims()->set_name("N");
  CHECK_THAT(refusal_of([&] { problem_from_wire(message, "problems[2]"); }),
             Catch::StartsWith("problems[2].dims[1].name: \"N\" is given twice"));
  message.mutable_dims(1)->clear_name();
  CHECK_THAT(refusal_of([&] { problem_from_wire(message, ""); }),
             Catch::StartsWith("dims[1].name: must not be empty"));
}

TEST_CASE("a configuration survives the wire in its order") {
  const Configuration configuration{{{"VECTOR", 8}, {"THREADS", 256}}};
  v1::Configuration message;
  to_wire(configuration, message);
  CHECK(configuration_from_wire(message, "configuration") == configuration);
}

TEST_CASE("a launch plan survives the wire whole") {
  LaunchPlan plan{{launch(), launch()}};
  plan.launches[1].cluster.reset();
  plan.launches[1].attributes = {};
  v1::LaunchPlan message;
  to_wire(plan, message);
  CHECK(plan_from_wire(message, "plan") == plan);
}

TEST_CASE("a parameter of an unknown source is refused by its field") {
  v1::LaunchPlan message;
  to_wire(LaunchPlan{{launch()}}, message);
  message.mutable_launches(0)->mutable_parameters(1)->set_source(static_cast<v1::Parameter::Source>(99));
  CHECK_THAT(refusal_of([&] { plan_from_wire(message, "plan"); }),
             Catch::StartsWith("plan.launches[0].parameters[1].source: "));
}

TEST_CASE("a rule carries the device constants and the limits of a launch") {
  const DeviceConstants device{132, 232448, 62914560, 90};
  v1::Rule message;
  to_wire(PlanTemplate(), device, message);
  CHECK(device_constants_from_wire(message.device_constants(), "rule") == device);
  CHECK(message.max_threads_per_block() == 1024);
  CHECK(message.max_shared_bytes() == 232448);
  message.mutable_device_constants()->RemoveLast();
  CHECK_THAT(refusal_of([&] { device_constants_from_wire(message.device_constants(), "rule"); }),
             Catch::StartsWith("rule.device_constants: \"device.cc\" is missing"));
}

TEST_CASE("departures and evidence and outcomes keep their meaning on the wire") {
  for (const Departure departure : all_departures().departures()) {
    CHECK(departure_from_wire(to_wire(departure), "d") == departure);
  }
  for (const Evidence evidence :
       {Evidence::None, Evidence::Shipped, Evidence::Replayed, Evidence::Imported, Evidence::Measured}) {
    CHECK(evidence_from_wire(to_wire(evidence), "e") == evidence);
  }
  for (int value = 0; value <= static_cast<int>(Outcome::OutOfMemory); ++value) {
    CHECK(outcome_from_wire(to_wire(static_cast<Outcome>(value)), "o") == static_cast<Outcome>(value));
  }
  CHECK(to_wire(Departure::Default) == v1::DEFAULT_CONFIGURATION);
  CHECK(to_wire(Evidence::Measured) == v1::MEASURED);
  CHECK(to_wire(Outcome::WrongResult) == v1::WRONG_RESULT);
}

TEST_CASE("the numbers of words that are gone are refused") {
  CHECK_THAT(refusal_of([] { departure_from_wire(static_cast<v1::Departure>(6), "accept[0]"); }),
             Catch::StartsWith("accept[0]: "));
  CHECK_THAT(refusal_of([] { evidence_from_wire(static_cast<v1::Evidence>(4), "evidence"); }),
             Catch::StartsWith("evidence: "));
}

TEST_CASE("an unspecified departure or outcome is refused by its field") {
  google::protobuf::RepeatedField<int> departures;
  to_wire(Match{Departure::Stale, Departure::Bucket}, departures);
  CHECK(match_from_wire(departures, "accept") == Match{Departure::Bucket, Departure::Stale});
  departures.Add(0);
  CHECK_THAT(refusal_of([&] { match_from_wire(departures, "accept"); }), Catch::StartsWith("accept[2]: "));
  CHECK_THAT(refusal_of([] { outcome_from_wire(v1::OUTCOME_UNSPECIFIED, "outcome"); }),
             Catch::StartsWith("outcome: "));
}

TEST_CASE("a digest on the wire has 32 bytes") {
  const Digest digest = Digest::of("x");
  CHECK(digest_from_wire(digest.view(), "digest") == digest);
  CHECK_THAT(refusal_of([] { digest_from_wire("abc", "artifact.digest"); }),
             Catch::StartsWith("artifact.digest: "));
}

}  // namespace cubind::test
