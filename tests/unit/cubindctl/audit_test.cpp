#include "client/cubindctl/answers/audit.hpp"

#include <catch2/catch.hpp>

#include "tests/support/facts.hpp"
#include "tests/support/reported.hpp"

namespace cubind::ctl {
namespace {

using Catch::Contains;

struct AuditFixture : test::Reported {
  AuditFixture() {
    record.verification.set_verified(true);
    record.verification.set_reference("kernel");
    record.verification.set_same_bits(true);
    test::set_problems(std::vector{problem, test::tiny_problem(2, 2049)}, record.verification);
    record.evidence = Evidence::Measured;
  }

  AuditLine line(const std::string& check) {
    return line(check, explain(input.table, *input.spec, question()));
  }
  AuditLine line(const std::string& check, const Explanation& explanation) {
    AuditInput audited{record, explanation, *input.spec, match, why, wanted};
    for (AuditLine& one : audit(audited)) {
      if (one.check == check) {
        return one;
      }
    }
    throw std::runtime_error("no check " + check);
  }
  Verdict verdict(const std::string& check) { return line(check).verdict; }

  TableRecord& record = input.table.records[0];
  std::string match = "exact", why;
  std::uint64_t wanted = 0;
};

TEST_CASE_METHOD(AuditFixture, "a verified record that is today's fails no check") {
  for (const char* check : {"reference", "tails", "same bits", "gain", "measurement", "today", "coverage"}) {
    INFO(check);
    CHECK(verdict(check) == Verdict::Ok);
  }
  CHECK_THAT(line("gain").evidence, Contains("1.25 x over the default (1.2"));
}

TEST_CASE_METHOD(AuditFixture,
                 "a kernel that is compared with its own default fails the check of its reference") {
  record.verification.set_reference("default");
  CHECK(verdict("reference") == Verdict::Fail);
  record.verification.set_verified(false);
  CHECK_THAT(line("reference").evidence, Contains("compared with nothing"));
}

TEST_CASE_METHOD(AuditFixture,
                 "a bucket that was compared at one problem alone fails the check of its tails") {
  test::set_problems(std::vector{problem}, record.verification);
  CHECK(verdict("tails") == Verdict::Fail);
}

TEST_CASE_METHOD(AuditFixture, "the gain over a library is that of the latest comparison") {
  CHECK(verdict("gain over library") == Verdict::Note);
  CHECK_THAT(line("gain over library").evidence, Contains("python -m cubind.torch compare"));
  record.over_library = {test::gain_over("torch 2.12.1", 0.5, 0.5, 0.5, 9),
                         test::gain_over("torch 2.13.0", 1.31, 1.29, 1.33, 40)};
  CHECK(verdict("gain over library") == Verdict::Ok);
  CHECK(line("gain over library").evidence == "1.31 x (1.29 to 1.33), torch 2.13.0, reported");
  record.over_library.back().set_gain_low(0.99);
  CHECK(verdict("gain over library") == Verdict::Note);
  record.over_library.pop_back();
  CHECK(verdict("gain over library") == Verdict::Fail);
}

TEST_CASE_METHOD(AuditFixture, "a gain whose interval holds 1 is a note") {
  trial(128, 1).finals = trial(256, 4).finals;
  CHECK(verdict("gain") == Verdict::Note);
  record.timing.set_gain_over_default(0);
  trial(128, 1).finals.clear();
  CHECK_THAT(line("gain").evidence, Contains("was not measured with it"));
}

TEST_CASE_METHOD(AuditFixture, "wrong results of other configurations are a note") {
  CHECK(verdict("other configurations") == Verdict::Ok);
  trial(32, 4).outcome = Outcome::WrongResult;
  CHECK(verdict("other configurations") == Verdict::Note);
}

TEST_CASE_METHOD(AuditFixture, "where no trial is stored nothing is said to be right") {
  const AuditLine unknown = line("other configurations", Explanation());
  CHECK(unknown.verdict == Verdict::Note);
  CHECK(unknown.evidence == "unknown: no trial of the problem is stored");
}

TEST_CASE_METHOD(AuditFixture, "a measurement that others disturbed fails") {
  record.provisional = true;
  CHECK_THAT(line("measurement").evidence, Contains("other processes used the GPU") && Contains("--retune"));
  record.provisional = false;
  record.evidence = Evidence::Imported;
  CHECK_THAT(line("measurement").evidence, Contains("it is imported"));
  CHECK(verdict("measurement") == Verdict::Fail);
}

TEST_CASE_METHOD(AuditFixture, "an answer with a departure and wanted problems fail") {
  match = "stale";
  why = "the driver has changed";
  wanted = 3;
  CHECK(verdict("today") == Verdict::Fail);
  CHECK_THAT(line("today").evidence,
             Contains("stale: the driver has changed") && Contains("cubindctl tune scale --problem "));
  CHECK_THAT(line("coverage").evidence, Contains("3 problems") && Contains("cubindctl tune --wanted scale"));
}

TEST_CASE_METHOD(AuditFixture, "spills and unknown work are notes") {
  EntryResources spilling = test::resources_of("scale", 128);
  spilling.set_spill_store_bytes(16);
  spilling.set_spill_load_bytes(16);
  trial(256, 4).resources = {spilling};
  CHECK(verdict("resources") == Verdict::Note);
  CHECK_THAT(line("resources").evidence,
             Contains("128 registers") && Contains("32 bytes of registers spill"));
}

}  // namespace
}  // namespace cubind::ctl
