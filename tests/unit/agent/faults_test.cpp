#include <catch2/catch.hpp>

#include "tests/unit/agent/job_world.hpp"
#include "tuner/agent/tuning/tune_job.hpp"

namespace cubind::test {
namespace {

// Fails for this configuration at this point; `times` counts down.
std::function<v1::Outcome(const Configuration&, const std::string&)> failing(
    v1::Outcome outcome, const std::string& at, const std::shared_ptr<int>& times) {
  return [=](const Configuration& one, const std::string& where) {
    if (one != configuration(3, 2) || where != at || *times == 0) {
      return v1::CORRECT;
    }
    --*times;
    return outcome;
  };
}

std::shared_ptr<int> times(int count) { return std::make_shared<int>(count); }

TEST_CASE("a fault that does not repeat in a fresh worker does not count") {
  World world({.outcome = failing(v1::RUNTIME, "measure", times(1))});
  const v1::JobResult result = world.run();
  CHECK(text(result.winner()) == "A=3,B=2");
  CHECK(world.channel.trial(configuration(3, 2))->outcome() == v1::CORRECT);
  CHECK(world.channel.trial(configuration(3, 2))->fault_count() == 1);
  CHECK(world.device.starts == 2);
}

TEST_CASE(
    "a fault that repeats in a fresh worker is the outcome of that configuration and the others go on") {
  const auto at = GENERATE("verify", "measure");
  const auto outcome = GENERATE(v1::RUNTIME, v1::TIMEOUT, v1::LAUNCH);
  World world({.outcome = failing(outcome, at, times(1000))});
  const v1::JobResult result = world.run();
  REQUIRE(result.status() == v1::JobResult::DONE);
  CHECK(text(result.winner()) != "A=3,B=2");
  CHECK(world.channel.trial(configuration(3, 2))->outcome() == outcome);
  CHECK(world.channel.trial(configuration(3, 2))->fault_count() == 2);
}

TEST_CASE("a fault that leaves the context alone is repeated in a fresh worker nevertheless") {
  World world({.outcome = failing(v1::LAUNCH, "measure", times(1000)), .sticky = false});
  world.run();
  CHECK(world.channel.trial(configuration(3, 2))->fault_count() == 2);
  CHECK(world.device.starts == 2);
}

TEST_CASE("a worker that dies without a reply is a fault of the configuration it worked on") {
  World world({.outcome = failing(v1::RUNTIME, "verify", times(1000)), .dies = true});
  const v1::JobResult result = world.run();
  CHECK(result.status() == v1::JobResult::DONE);
  CHECK(world.channel.trial(configuration(3, 2))->outcome() == v1::RUNTIME);
  CHECK(world.channel.trial(configuration(3, 2))->detail() == "the device worker died: signal 11");
}

TEST_CASE("a worker that hangs while it prepares ends the job at its first deadline with what to look at") {
  World world({.hangs_preparing = 1});
  const v1::JobResult result = world.run();
  CHECK(result.status() == v1::JobResult::FAILED);
  CHECK_THAT(result.error(),
             Catch::Contains("no answer within 30000 ms") && Catch::Contains("does the reference end?"));
  CHECK(world.device.starts == 1);
}

TEST_CASE("a fault that is on record is repeated once more and then counts") {
  World world({.outcome = failing(v1::RUNTIME, "verify", times(1))});
  world.channel.die_at = 24;  // when the fault has been stored but not repeated
  REQUIRE_FALSE(world.try_run());
  REQUIRE(world.channel.trial(configuration(3, 2))->fault_count() == 1);
  world.device.behaviour().outcome = failing(v1::RUNTIME, "verify", times(1));
  world.run();
  CHECK(world.channel.trial(configuration(3, 2))->fault_count() == 2);
}

TEST_CASE("a configuration whose fault counts is not tried again") {
  World world({.outcome = failing(v1::RUNTIME, "verify", times(2))});
  world.run();
  world.device.verified.clear();
  world.run();
  CHECK(world.device.verified.empty());
}

TEST_CASE("out of memory is the job's alone and never stored with the configuration") {
  World world({.outcome = failing(v1::OUT_OF_MEMORY, "measure", times(1000))});
  const v1::JobResult result = world.run();
  CHECK(result.status() == v1::JobResult::DONE);
  CHECK(text(result.winner()) != "A=3,B=2");
  const v1::TrialHeader* trial = world.channel.trial(configuration(3, 2));
  CHECK((trial == nullptr || trial->outcome() == v1::CORRECT));
  world.device.behaviour().outcome = nullptr;
  CHECK(text(world.run().winner()) == "A=3,B=2");
}

TEST_CASE("a finalist that faults once in a round is measured again in that round") {
  const auto countdown = times(1);
  World world({});
  int measured = 0;
  world.device.behaviour().outcome = [&](const Configuration& one, const std::string& where) {
    if (one != configuration(3, 2) || where != "measure") {
      return v1::CORRECT;
    }
    return ++measured == 4 ? v1::RUNTIME : v1::CORRECT;
  };
  const v1::JobResult result = world.run();
  CHECK(text(result.winner()) == "A=3,B=2");
  CHECK(world.device.starts == 2);
}

TEST_CASE("a finalist that dies silently in a round is found by measuring one by one") {
  World world({.time_us = [](const Configuration&) { return 100.0; }, .dies = true});
  int measured = 0;
  world.device.behaviour().outcome = [&](const Configuration& one, const std::string& where) {
    if (one != configuration(1, 2) || where != "measure") {
      return v1::CORRECT;
    }
    return ++measured > 3 ? v1::RUNTIME : v1::CORRECT;
  };
  const v1::JobResult result = world.run();
  REQUIRE(result.status() == v1::JobResult::DONE);
  CHECK(world.channel.trial(configuration(1, 2))->outcome() == v1::RUNTIME);
  CHECK(world.channel.trial(configuration(1, 1))->outcome() == v1::CORRECT);
}

TEST_CASE("a winner that faults after timing is out once that has repeated") {
  World world({});
  int verified = 0;
  world.device.behaviour().outcome = [&](const Configuration& one, const std::string& where) {
    const bool again = one == configuration(3, 2) && where == "verify" && ++verified > 1;
    return again ? v1::RUNTIME : v1::CORRECT;
  };
  const v1::JobResult result = world.run();
  REQUIRE(result.status() == v1::JobResult::DONE);
  CHECK(text(result.winner()) == "A=1,B=1");
}

TEST_CASE("a job whose outputs do not depend on its inputs fails as vacuous, before anything is measured") {
  World world({.vacuity = "the outputs (y) are the same"});
  const v1::JobResult result = world.run();
  CHECK(result.status() == v1::JobResult::FAILED);
  CHECK_THAT(result.error(), Catch::Matchers::StartsWith("simulated at N=1024,T=f32: vacuous: ") &&
                                 Catch::Matchers::Contains("the outputs (y) are the same"));
  CHECK(world.device.measured.empty());
}

}  // namespace
}  // namespace cubind::test
