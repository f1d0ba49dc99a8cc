#include "client/answer_trust.hpp"

#include <catch2/catch.hpp>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "plan/launch_digest.hpp"
#include "tests/support/refusal_of.hpp"
#include "tests/support/signing_keys.hpp"

namespace cubind {
namespace {

const auto kNow = *parse_iso8601_utc("2026-12-01T00:00:00Z");

RuleParts scale_rule() {
  RuleParts rule;
  rule.kernel = "scale";
  rule.asked = parse_problem("N=3000,K=2,T=f32");
  rule.configuration.values = {{"THREADS", 128}};
  rule.intervals = {{"N", 2049, 4096}, {"K", 2, 2}};
  rule.plan.launches = {{"scale<float, 128, 2>", "_Z5scale", {"cdiv(N, THREADS)"}, {"THREADS"}, "0", {}}};
  return rule;
}

Fingerprint scale_print() {
  Fingerprint print;
  print.name_space = "team";
  print.kernel = "scale";
  print.artifact = Digest::of("artifact");
  print.problem = "N=4096,K=2,T=f32";
  print.bucket = "N=2049..4096,K=2..2";
  print.device_class = Digest::of("device");
  print.policy = "cold/3,stream";
  print.toolchain = "nvrtc 13.0";
  print.architecture = "sm_90";
  print.configuration = "THREADS=128";
  print.numerics = "tolerance";
  print.launches = launch_digest(scale_rule().plan);
  print.cubin = Digest::of("cubin");
  print.cubin_bytes = 5;
  print.evidence = "measured";
  print.issuer = "acme";
  print.serial = 7;
  print.expires = *parse_iso8601_utc("2027-03-01T00:00:00Z");
  return print;
}

/// A question and its answer.
struct Exchange : Asked, Told {};

Exchange scale_answer() {
  Exchange answer;
  answer.name_space = "team";
  answer.numerics = "tolerance";
  answer.match = {Departure::Bucket};
  answer.measured_problem = parse_problem("N=4096,K=2,T=f32");
  answer.device_class = answer.measured_device_class = Digest::of("device");
  answer.artifact = Digest::of("artifact");
  answer.toolchain = "nvrtc 13.0";
  answer.architecture = "sm_90";
  answer.evidence = Evidence::Measured;
  return answer;
}

/// What a client with a trust file of one line says of an answer.
struct Checker {
  explicit Checker(const std::string& line = test::trust_line()) {
    write_file_atomic(folder.path() / "trust", line);
  }

  std::string fault(Exchange answer, const RuleParts& rule, const std::string& cubin = "cubin") const {
    answer.rule = rule;
    return test::message_of([&] {
      AnswerTrust(folder.path() / "trust", folder.path() / "serials").check(answer, answer, cubin, kNow);
    });
  }
  std::string fault(Exchange answer, const Fingerprint& print = scale_print(),
                    const RuleParts& rule = scale_rule(), const SecretKey& key = test::signing_key()) const {
    answer.fingerprint = print_fingerprint(print);
    answer.signature = key.sign(answer.fingerprint).packed();
    return fault(answer, rule);
  }

  TempDir folder;
};

std::string fault_of_answer(const std::function<void(Exchange&)>& change) {
  Exchange answer = scale_answer();
  change(answer);
  return Checker().fault(answer);
}

std::string fault_of_rule(const std::function<void(RuleParts&)>& change) {
  RuleParts rule = scale_rule();
  change(rule);
  return Checker().fault(scale_answer(), scale_print(), rule);
}

}  // namespace

TEST_CASE("an answer that is signed for its question is accepted") {
  CHECK(Checker().fault(scale_answer()).empty());
}

TEST_CASE("an answer without a signature is refused where a trust file is given") {
  CHECK_THAT(Checker().fault(scale_answer(), scale_rule()),
             Catch::StartsWith("the answer for scale N=3000,K=2,T=f32: is not signed, and "));
}

TEST_CASE("an answer of an unknown key is refused") {
  CHECK_THAT(Checker().fault(scale_answer(), scale_print(), scale_rule(), test::other_signing_key()),
             Catch::Contains("is signed by the key CD2FD7FDD14E9A57, which"));
}

TEST_CASE("an answer of an expired key is refused") {
  CHECK_THAT(Checker(test::trust_line("2026-11-30")).fault(scale_answer()),
             Catch::Contains("has expired in "));
}

TEST_CASE("an answer of an expired bundle is refused") {
  Fingerprint print = scale_print();
  print.expires = kNow;
  CHECK_THAT(Checker().fault(scale_answer(), print),
             Catch::Contains("comes from a bundle that has expired on 2026-12-01"));
}

TEST_CASE("a namespace that the key may not sign for is refused") {
  CHECK_THAT(Checker(test::trust_line("2099-01-01", "other")).fault(scale_answer()),
             Catch::Contains("may not sign for the namespace \"team\""));
}

TEST_CASE("an answer with an older serial than an earlier one is refused") {
  const Checker checker;
  Fingerprint newer = scale_print();
  newer.serial = 8;
  CHECK(checker.fault(scale_answer(), newer).empty());
  CHECK_THAT(checker.fault(scale_answer()),
             Catch::Contains("has the serial 7 of acme, and 8 was accepted before"));
}

TEST_CASE("a changed fingerprint is refused") {
  Exchange answer = scale_answer();
  Fingerprint print = scale_print();
  answer.signature = test::signing_key().sign(print_fingerprint(print)).packed();
  print.serial = 8;
  answer.fingerprint = print_fingerprint(print);
  CHECK_THAT(Checker().fault(answer, scale_rule()),
             Catch::Contains("has a fingerprint that acme has not signed"));
}

TEST_CASE("a tampered cubin is refused") {
  Exchange answer = scale_answer();
  answer.fingerprint = print_fingerprint(scale_print());
  answer.signature = test::signing_key().sign(answer.fingerprint).packed();
  CHECK_THAT(Checker().fault(answer, scale_rule(), "cubim"),
             Catch::StartsWith("artifact.digest: the answer has "));
  Fingerprint longer = scale_print();
  longer.cubin_bytes = 6;
  CHECK_THAT(Checker().fault(scale_answer(), longer), Catch::StartsWith("artifact.cubin_bytes: "));
}

TEST_CASE("a signed cubin of another question is refused") {
  const auto refuse = [](const std::function<void(Exchange&)>& change, const std::string& field) {
    CHECK_THAT(fault_of_answer(change), Catch::StartsWith(field + ": the answer has "));
  };
  refuse([](Exchange& answer) { answer.name_space = "other"; }, "namespace");
  refuse([](Exchange& answer) { answer.warm_l2 = true; }, "policy");
  refuse([](Exchange& answer) { answer.graph_launch = true; }, "policy");
  refuse([](Exchange& answer) { answer.numerics = "invariant:N"; }, "numerics");
  refuse([](Exchange& answer) { answer.device_class = Digest::of("other"); }, "device_class");
  refuse([](Exchange& answer) { answer.measured_problem = parse_problem("N=4096,K=3,T=f32"); },
         "provenance.measured_problem");
  refuse([](Exchange& answer) { answer.artifact = Digest::of("other"); }, "artifact.key");
  refuse([](Exchange& answer) { answer.evidence = Evidence::Imported; }, "provenance.evidence");
  CHECK_THAT(fault_of_rule([](RuleParts& rule) { rule.kernel = "copy"; }), Catch::StartsWith("kernel: "));
  CHECK_THAT(fault_of_rule([](RuleParts& rule) { rule.asked.types[0].type = DType::F16; }),
             Catch::StartsWith("problem: "));
}

TEST_CASE("a rule that goes beyond the signed bucket is refused") {
  const auto refuse = [](const std::function<void(RuleParts&)>& change) {
    CHECK_THAT(fault_of_rule(change), Catch::StartsWith("rule.intervals: "));
  };
  refuse([](RuleParts& rule) { rule.intervals[0].upper = 4097; });
  refuse([](RuleParts& rule) { rule.intervals[0].lower = 1; });
  refuse([](RuleParts& rule) { rule.asked.dims[1].value = rule.intervals[1].upper = 3; });
  refuse([](RuleParts& rule) { rule.asked.dims[0].value = 5000; });
  refuse([](RuleParts& rule) { rule.intervals.pop_back(); });
}

TEST_CASE("a plan of another configuration is refused") {
  CHECK_THAT(fault_of_rule([](RuleParts& rule) { rule.configuration.values[0].value = 256; }),
             Catch::StartsWith("configuration: "));
  CHECK_THAT(fault_of_rule([](RuleParts& rule) { rule.plan.launches[0].grid = {"N"}; }),
             Catch::StartsWith("rule: the answer has "));
}

TEST_CASE("an answer that departs further than its bucket is refused") {
  CHECK_THAT(fault_of_answer([](Exchange& answer) { answer.match = {Departure::NearestProblem}; }),
             Catch::StartsWith("provenance.departures: the answer is nearest_problem"));
}

}  // namespace cubind
