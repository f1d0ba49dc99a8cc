// Messages of agents that no agent of this build sends.
#include "server/convert/agent_messages.hpp"

#include <catch2/catch.hpp>

#include "tests/support/refusal_of.hpp"

namespace cubind::test {
namespace {

using Catch::Matchers::Contains;

v1::JobResult failure() {
  v1::JobResult result;
  result.set_status(v1::JobResult::FAILED);
  result.add_outcomes()->set_outcome(v1::COMPILE);
  result.add_stages()->set_stage("compiling");
  return result;
}

struct FalseResult {
  const char* field;
  void (*tell)(v1::JobResult& result);
};

TEST_CASE("a result whose counts and times cannot be added up is refused with its field") {
  const auto told = GENERATE(
      FalseResult{"result.outcomes[1].outcome",
                  [](v1::JobResult& r) { r.add_outcomes()->set_outcome(v1::COMPILE); }},
      FalseResult{"result.stages[0].ms", [](v1::JobResult& r) { r.mutable_stages(0)->set_ms(1e308); }},
      FalseResult{"result.stages: has 1001 elements", [](v1::JobResult& r) {
                    for (int i = 0; i < 1000; ++i) {
                      r.add_stages()->set_stage("stage " + std::to_string(i));
                    }
                  }});
  CAPTURE(told.field);
  v1::JobResult message = failure();
  REQUIRE(refusal_of([&] { result_from_wire(message, {}); }).empty());
  told.tell(message);
  CHECK_THAT(refusal_of([&] { result_from_wire(message, {}); }), Contains(told.field));
}

TEST_CASE("a report of progress with a stage without a name is refused") {
  v1::Progress message;
  message.add_stages()->set_stage("");
  CHECK_THAT(refusal_of([&] { check_progress(message); }), Contains("progress.stages[0].stage"));
}

TEST_CASE("blocks that are empty or would never end are refused") {
  v1::Batch batch;
  v1::SampleBlock& block = *batch.add_blocks();
  block.set_trial_key(std::string(32, 'x'));
  CHECK_THAT(refusal_of([&] { batch_from_wire(batch); }), Contains("batch.blocks[0].samples_us"));
  block.add_samples_us(20);
  CHECK(refusal_of([&] { batch_from_wire(batch); }).empty());
  block.set_index(UINT32_MAX);
  CHECK_THAT(refusal_of([&] { batch_from_wire(batch); }), Contains("batch.blocks[0].index"));
}

TEST_CASE("a fact with a field that this version does not know is refused with its place") {
  v1::Batch batch;
  v1::SampleBlock& block = *batch.add_blocks();
  block.set_trial_key(std::string(32, 'x'));
  block.add_samples_us(20);
  v1::Conditions& conditions = *block.mutable_conditions();
  conditions.GetReflection()->MutableUnknownFields(&conditions)->AddVarint(99, 1);
  CHECK_THAT(refusal_of([&] { batch_from_wire(batch); }),
             Contains("batch.blocks[0].conditions: has a field that this version does not know (number 99)"));
}

TEST_CASE("the symbols of a check hold no control character") {
  v1::CheckResult check;
  check.set_outcome(v1::CORRECT);
  check.mutable_info()->add_entries()->set_entry_symbol("\x1b]0;title\x07");
  CHECK_THAT(refusal_of([&] { checked(check); }), Contains("check.info.entries[0].entry_symbol"));
}

}  // namespace
}  // namespace cubind::test
