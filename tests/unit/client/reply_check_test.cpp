#include "client/reply_check.hpp"

#include <catch2/catch.hpp>

#include <functional>

#include "base/error.hpp"
#include "base/random.hpp"
#include "plan/wire.hpp"
#include "schemas/cubind.pb.h"
#include "tests/fakes/sample_reply.hpp"
#include "tests/support/refusal_of.hpp"

namespace cubind {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;
using test::refusal_of;

const DeviceConstants kRichDevice{132, 232448, 62914560, 90};

Problem rich_problem(std::int64_t n) {
  return {{{"N", n}, {"D", 4096}}, {{"T", DType::F16}}, {{"CAUSAL", 1}}, "skewed"};
}

PlanTemplate rich_template() {
  PlanTemplate plan;
  plan.constraints = {"N > 0", "D % 4 == 0"};
  plan.static_shared_bytes = 48;
  plan.launches = {{"scale<float>", "_Z5scale", {"N", "2"}, {"128", "2"}, "N * 4", {}}};
  plan.launches[0].parameters = {
      {"x", ParameterSource::Buffer, DType::Bf16, Role::In, "N", 16, "", {"N", "1"}},
      {"n", ParameterSource::Value, DType::I64, Role::None, "", 0, "N"},
      {"alpha", ParameterSource::Caller, DType::U32, Role::None, "", 0, ""},
      {"y", ParameterSource::Buffer, DType::F32, Role::Scratch, "N", 16, ""},
      {"filter", ParameterSource::Symbol, DType::F32, Role::In, "9", 16, "", {"9"}, "filter<float>", "_Z6f"},
      {"y", ParameterSource::TensorMap, DType::F32, Role::Scratch, "N", 16, ""}};
  plan.launches[0].parameters.back().tensor_map = {.argument = "y_map",
                                                   .type = TensorMapType::Tf32,
                                                   .nan_fill = true,
                                                   .sizes = {"N / 4", "4"},
                                                   .strides = {"N"},
                                                   .box = {"4", "N"},
                                                   .element_strides = {"1", "2"},
                                                   .modes = {"0", "16", "N"}};
  plan.launches[0].cluster = {"2", "N"};
  plan.launches[0].attributes = {true, true, -3};
  return plan;
}

v1::GetVariantRequest rich_question() {
  v1::GetVariantRequest request;
  request.set_kernel("scale");
  request.set_namespace_("team");
  to_wire(rich_problem(1000), *request.mutable_problem());
  request.mutable_policy()->set_graph_launch(true);
  request.mutable_numerics()->set_kind(v1::Numerics::INVARIANT);
  request.mutable_numerics()->set_invariant_dim("N");
  return request;
}

v1::GetVariantReply rich_reply() {
  v1::GetVariantReply reply = test::sample_reply(rich_problem(1000), "cubin");
  to_wire(rich_template(), kRichDevice, *reply.mutable_rule());
  reply.mutable_rule()->add_conditions("!(N % 8 == 1)");
  reply.mutable_artifact()->set_key(std::string(Digest::of("key").view()));
  reply.mutable_provenance()->add_departures(v1::BUCKET);
  reply.mutable_provenance()->add_departures(v1::STALE);
  reply.set_fingerprint("line");
  reply.set_signature(std::string("ED\0\xff", 4));
  return reply;
}

/// Of the sample, changed: whether it is unsettled.
bool checked(const std::function<void(v1::GetVariantRequest&, v1::GetVariantReply&)>& change) {
  v1::GetVariantRequest request = rich_question();
  v1::GetVariantReply reply = rich_reply();
  change(request, reply);
  const Told told = read_told(reply.SerializeAsString());
  check_reply(read_asked(request.SerializeAsString()), told);
  return is_unsettled(told);
}

std::string mismatch(const std::function<void(v1::GetVariantRequest&, v1::GetVariantReply&)>& change) {
  const auto error = test::error_of([&] { checked(change); });
  CHECK((!error || error->code() == ErrorCode::DataLoss));
  return error ? error->what() : "";
}

/// What a client does with these bytes; false: it refuses them.
bool is_read(const std::string& request, const std::string& reply) {
  try {
    const Told told = read_told(reply);
    check_reply(read_asked(request), told);
    Rule(told.rule).plan_for(rich_problem(1000));
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

TEST_CASE("a rule is read from the bytes of a reply whole") {
  const RuleParts rule = read_told(rich_reply().SerializeAsString()).rule;
  CHECK(rule.kernel == "scale");
  CHECK(rule.asked == rich_problem(1000));
  CHECK(rule.configuration == test::sample_configuration());
  REQUIRE(rule.intervals.size() == 1);
  CHECK(rule.intervals[0].dim == "N");
  CHECK(rule.intervals[0].lower == 257);
  CHECK(rule.intervals[0].upper == 1024);
  CHECK(rule.own_records == std::vector{rich_problem(512)});
  CHECK(rule.plan == rich_template());
  CHECK(rule.device == kRichDevice);
  CHECK(rule.conditions == std::vector<std::string>{"!(N % 8 == 1)"});
}

TEST_CASE("negative numbers and each role and source are read as they were written") {
  v1::GetVariantReply reply = rich_reply();
  reply.mutable_rule()->mutable_intervals(0)->set_lower(-5);
  for (const Role role : {Role::None, Role::In, Role::Out, Role::InOut, Role::Zero, Role::Scratch}) {
    reply.mutable_rule()->mutable_launches(0)->mutable_parameters(0)->set_role(to_wire(role));
    const RuleParts rule = read_told(reply.SerializeAsString()).rule;
    CHECK(rule.intervals.at(0).lower == -5);
    CHECK(rule.plan.launches.at(0).parameters.at(0).role == role);
  }
}

TEST_CASE("what is checked of a question and its reply is read as it was written") {
  const Asked asked = read_asked(rich_question().SerializeAsString());
  CHECK(asked.kernel == "scale");
  CHECK(asked.name_space == "team");
  CHECK(asked.problem == rich_problem(1000));
  CHECK_FALSE(asked.warm_l2);
  CHECK(asked.graph_launch);
  CHECK(asked.numerics == "invariant:N");
  CHECK_FALSE(asked.accepted);
  CHECK_FALSE(asked.locked);
  const Told told = read_told(rich_reply().SerializeAsString());
  CHECK(told.fingerprint == "line");
  CHECK(told.signature == std::string("ED\0\xff", 4));
  CHECK(told.match == Match{Departure::Bucket, Departure::Stale});
  CHECK(told.generation == std::pair(std::string(16, '\x0a'), std::uint64_t{7}));
  CHECK(told.measured_problem == rich_problem(1000));
  CHECK(told.device_class == Digest::of("h200"));
  CHECK(told.measured_device_class == Digest::of("h200"));
  CHECK(told.artifact == Digest::of("key"));
  CHECK(told.toolchain == "nvrtc 13.0");
  CHECK(told.architecture == "sm_90");
  CHECK(told.evidence == Evidence::Measured);
  CHECK_FALSE(told.provisional);
}

TEST_CASE("a reply to another question is refused at the field that differs") {
  CHECK(mismatch([](auto&, auto&) {}).empty());
  CHECK_THAT(mismatch([](auto&, auto& reply) { reply.set_kernel("other"); }), StartsWith("kernel: "));
  CHECK_THAT(
      mismatch([](auto& request, auto&) { request.mutable_problem()->mutable_dims(0)->set_value(1001); }),
      StartsWith("problem: asked for N=1001,") && Contains("the answer is for N=1000,"));
  CHECK_THAT(
      mismatch([](auto& request, auto&) { request.mutable_problem()->mutable_types(0)->set_type("bf16"); }),
      StartsWith("problem: "));
  CHECK_THAT(mismatch([](auto& request, auto&) {
               v1::NamedValue& dim = *request.mutable_problem()->add_dims();
               dim.set_name("K");
             }),
             StartsWith("problem: "));
  CHECK_THAT(mismatch([](auto& request, auto&) { request.mutable_problem()->set_scenario(""); }),
             StartsWith("problem: "));
  CHECK_THAT(mismatch([](auto& request, auto&) { request.mutable_locked()->set_number(7); }),
             StartsWith("provenance.generation: "));
  CHECK_THAT(mismatch([](auto& request, auto&) {
               request.set_restrict_accept(true);
               request.add_accept(v1::BUCKET);
             }),
             StartsWith("provenance.departures: accepted bucket, the answer is bucket+stale"));
}

TEST_CASE("a question may spell types and place flags in its own way") {
  CHECK_FALSE(checked([](auto& request, auto&) {
    request.mutable_problem()->mutable_types(0)->set_type("torch.float16");
    *request.mutable_problem()->add_dims() = request.problem().flags(0);
    request.mutable_problem()->clear_flags();
  }));
  CHECK_FALSE(checked([](auto& request, auto& reply) {
    request.mutable_problem()->clear_flags();
    *request.mutable_locked() = reply.provenance().generation();
    request.set_restrict_accept(true);
    request.add_accept(v1::BUCKET);
    request.add_accept(v1::STALE);
  }));
}

TEST_CASE("an answer with a job behind it or beyond its bucket or provisional will get better") {
  CHECK(checked([](auto&, auto& reply) { reply.set_job_id("job-1"); }));
  CHECK(checked([](auto&, auto& reply) { reply.mutable_provenance()->set_provisional(true); }));
  CHECK(checked([](auto&, auto& reply) { reply.mutable_provenance()->add_departures(v1::NEAREST_PROBLEM); }));
}

TEST_CASE("what no version has a meaning for is refused") {
  const auto refused = [](const auto& change) {
    v1::GetVariantReply reply = rich_reply();
    change(reply);
    return refusal_of([&] { read_told(reply.SerializeAsString()); });
  };
  const auto first = [](v1::GetVariantReply& reply) {
    return reply.mutable_rule()->mutable_launches(0)->mutable_parameters(0);
  };
  CHECK_THAT(refused([&](auto& reply) { first(reply)->set_role(static_cast<v1::Role>(6)); }),
             StartsWith("role: "));
  CHECK_THAT(refused([&](auto& reply) { first(reply)->set_source(static_cast<v1::Parameter::Source>(5)); }),
             StartsWith("source: "));
  CHECK_THAT(refused([&](auto& reply) { first(reply)->set_type("fp12"); }), StartsWith("type: \"fp12\""));
  for (const int departure : {0, 6, 8, -1}) {
    CHECK_THAT(refused([&](auto& reply) {
                 reply.mutable_provenance()->add_departures(static_cast<v1::Departure>(departure));
               }),
               StartsWith("departures: "));
  }
  for (const int evidence : {4, 6, -1}) {
    CHECK_THAT(refused([&](auto& reply) {
                 reply.mutable_provenance()->set_evidence(static_cast<v1::Evidence>(evidence));
               }),
               StartsWith("evidence: "));
  }
  CHECK_THAT(refused([](auto& reply) { reply.set_device_class("short"); }), StartsWith("digest: "));
  CHECK_THAT(refused([](auto& reply) { *reply.mutable_problem()->add_dims() = reply.problem().dims(0); }),
             StartsWith("name: \"N\" is empty or given twice"));
  CHECK_THAT(refused([](auto& reply) { reply.mutable_rule()->clear_launches(); }),
             StartsWith("rule: has no launch"));
  CHECK_THAT(refused([](auto& reply) { reply.mutable_rule()->mutable_device_constants()->RemoveLast(); }),
             StartsWith("rule.device_constants: \"device.cc\" is missing"));
}

TEST_CASE("a truncated or hostile reply is an error of the client and never more") {
  const std::string request = rich_question().SerializeAsString(), reply = rich_reply().SerializeAsString();
  REQUIRE(is_read(request, reply));
  std::size_t read = 0;
  for (std::size_t at = 0; at < reply.size(); ++at) {
    read += is_read(request, reply.substr(0, at));
    for (const int flip : {0x01, 0x04, 0x80, 0xff}) {
      std::string flipped = reply;
      flipped[at] = static_cast<char>(flipped[at] ^ flip);
      read += is_read(request, flipped);
    }
  }
  CHECK(read > 0);                 // flips of what no client reads
  CHECK(read < 4 * reply.size());  // of 5 for each byte
  Random random(7);
  for (int i = 0; i < 2000; ++i) {
    std::string noise(random.below(64), '\0');
    for (char& byte : noise) {
      byte = static_cast<char>(random.below(256));
    }
    CHECK_FALSE(is_read(request, noise));
  }
  CHECK_THROWS_AS(read_told("\xff\xff"), Error);
}

}  // namespace cubind
