#include "server/jobs/outcomes.hpp"

#include <catch2/catch.hpp>

#include "tests/unit/server/queue_fixture.hpp"

namespace cubind::test {
namespace {

struct OutcomesFixture : SchedulerFixture {
  Outcomes& outcomes = scheduler->outcomes();
  std::uint64_t agent = scheduler->agent_joined(agent_with(), link);

  bool store(const WorkBatch& work) {
    return scheduler->store_batch(agent, link.leases.back().id, link.leases.back().fence, work);
  }
  bool finish(const WorkResult& result) {
    return scheduler->finish(agent, link.leases.back().id, link.leases.back().fence, result);
  }
};

TEST_CASE_METHOD(OutcomesFixture,
                 "a stored batch tells the GPU's conditions and its artifacts, a refused one nothing") {
  std::vector<std::string> artifacts;
  outcomes.on_artifact([&](const ArtifactRow& row) { artifacts.push_back(row.kernel); });
  submit();
  WorkBatch work = batch("a");
  work.blocks[0].mutable_block()->mutable_conditions()->set_temperature_c(61);
  WorkBatch forged = work;
  forged.trials[0].problem = problem_of(1);
  CHECK_FALSE(store(forged));
  CHECK(outcomes.conditions_of("GPU-1").temperature_c() == 0);
  CHECK(artifacts.empty());
  clock.advance(std::chrono::seconds(1));
  scheduler->tick();
  REQUIRE(store(work));
  CHECK(outcomes.conditions_of("GPU-1").temperature_c() == 61);
  CHECK(outcomes.conditions_of("GPU-2").temperature_c() == 0);
  CHECK(artifacts == std::vector<std::string>{"vector_add"});
}

TEST_CASE_METHOD(OutcomesFixture,
                 "a record that replaces one with another configuration is a change of winners") {
  for (const std::string name : {"a", "b", "b"}) {
    submit_tune(question(4096), h200_class(), true);
    REQUIRE(store(batch(name)));
    REQUIRE(finish(done(name)));
  }
  CHECK(outcomes.winner_changes() == 1);
}

}  // namespace
}  // namespace cubind::test
