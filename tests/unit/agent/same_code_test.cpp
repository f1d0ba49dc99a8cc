#include "tuner/agent/tuning/same_code.hpp"

#include <catch2/catch.hpp>

#include "plan/wire.hpp"
#include "tests/support/named_cubin.hpp"
#include "tests/unit/agent/job_world.hpp"

namespace cubind::test {
namespace {

std::string code_of(const std::string& entry) { return entry.substr(0, entry.rfind(',')); }

/// B becomes part of names alone: the code depends on A.
void name_alone(World& world) {
  world.compiler.cubin = [](const std::string& entry, const std::string& symbol) {
    return named_cubin(symbol, code_of(entry));
  };
}

std::set<std::string> measured_trials(const World& world) {
  std::set<std::string> keys;
  for (const auto& [sample, count] : world.device.measured) {
    keys.insert(std::get<0>(sample));
  }
  return keys;
}

const v1::TrialHeader& trial(const World& world, std::int64_t a, std::int64_t b) {
  const v1::TrialHeader* found = world.channel.trial(configuration(a, b));
  REQUIRE(found != nullptr);
  return *found;
}

TEST_CASE("of configurations that run the same code one is measured and the others name it") {
  World world({});
  name_alone(world);
  const v1::JobResult result = world.run();
  CHECK(text(result.winner()) == "A=3,B=1");
  CHECK(result.search().trials() == 24);
  CHECK(result.search().complete());
  CHECK(count_of(result, v1::CORRECT) + count_of(result, v1::UNVERIFIED) == 24);
  CHECK(measured_trials(world).size() == 6);
  CHECK(world.channel.trials.size() == 24);
  CHECK(world.channel.artifacts.size() == 24);
  for (std::int64_t a = 1; a <= 6; ++a) {
    const v1::TrialHeader& measured = trial(world, a, 1);
    CHECK(measured.measured_as().empty());
    for (std::int64_t b = 2; b <= 4; ++b) {
      INFO(a << " " << b);
      CHECK(trial(world, a, b).measured_as() == measured.trial_key());
      CHECK(trial(world, a, b).outcome() == measured.outcome());
      CHECK(measured_trials(world).count(trial(world, a, b).trial_key()) == 0);
    }
  }
}

TEST_CASE("a value that changes no code wins nothing: the default is served without a gain") {
  World world({.time_us = [](const Configuration& one) { return one.value("B") == 4 ? 99.0 : 100.0; }});
  name_alone(world);
  world.compiler.refuses = [](const std::string& entry) {
    return entry.starts_with("simulated") && code_of(entry) != "simulated<float, 1";
  };
  const v1::JobResult result = world.run();
  CHECK(text(result.winner()) == "A=1,B=1");
  CHECK(result.provenance().timing().gain_over_default() == 1);
  CHECK(result.finalists_size() == 1);
}

TEST_CASE("a winner so far that runs the default's code gives its place to the default") {
  World first(
      {.time_us = [](const Configuration& one) { return one == configuration(1, 4) ? 50.0 : 100.0; }});
  const v1::JobResult lucky = first.run();
  REQUIRE(text(lucky.winner()) == "A=1,B=4");
  World world({});
  name_alone(world);
  world.channel.frame.set_incumbent_trial(lucky.winner_trial());
  *world.channel.frame.mutable_incumbent() = lucky.winner();
  world.device.behaviour().time_us = [](const Configuration&) { return 100.0; };
  const v1::JobResult result = world.run();
  CHECK(text(result.winner()) == "A=1,B=1");
  CHECK(trial(world, 1, 4).measured_as() == trial(world, 1, 1).trial_key());
}

TEST_CASE("the same code under other launches is measured for each") {
  World world({});
  world.compiler.cubin = [](const std::string&, const std::string& symbol) {
    return named_cubin(symbol, "code");
  };
  world.run();
  CHECK(measured_trials(world).size() == 6);  // the grid depends on A
}

TEST_CASE("bytes that are no cubin's are measured for each configuration") {
  World world({});
  world.compiler.cubin = [](const std::string&, const std::string&) { return std::string("equal"); };
  world.run();
  CHECK(measured_trials(world).size() == 24);
}

TEST_CASE("a job that is killed anywhere and one that is repeated measure no more") {
  World whole({});
  name_alone(whole);
  const v1::JobResult expected = whole.run();
  const std::size_t batches = whole.channel.batches;
  for (std::size_t die_at = 0; die_at < batches; die_at += 7) {
    World world({});
    name_alone(world);
    world.channel.die_at = die_at;
    world.channel.die_after_storing = true;
    world.try_run();
    const v1::JobResult result = world.run();
    INFO(die_at);
    CHECK(result.winner_trial() == expected.winner_trial());
    CHECK(world.channel.trials.size() == 24);
    CHECK(measured_trials(world) == measured_trials(whole));
    const int fetched = world.channel.fetched;
    const std::size_t known = world.device.measured.size();
    CHECK(world.run().winner_trial() == expected.winner_trial());
    CHECK(world.device.measured.size() == known);
    CHECK(world.channel.fetched == fetched);
  }
}

TEST_CASE("what fails fails for all that run its code, and is tried for one alone") {
  World world({.outcome = [](const Configuration& one, const std::string&) {
    return one.value("A") == 3 ? v1::RUNTIME : v1::CORRECT;
  }});
  name_alone(world);
  const v1::JobResult result = world.run();
  CHECK(text(result.winner()) == "A=2,B=1");
  CHECK(count_of(result, v1::RUNTIME) == 4);
  CHECK(trial(world, 3, 1).fault_count() == 2);
  for (std::int64_t b = 2; b <= 4; ++b) {
    CHECK(trial(world, 3, b).outcome() == v1::RUNTIME);
    CHECK(trial(world, 3, b).fault_count() == 0);
  }
}

TEST_CASE("a finalist that is wrong after its timing takes those that run its code with it") {
  World world({});
  name_alone(world);
  world.device.behaviour().wrong = [](const Configuration& one, const Problem&, bool after_timing) {
    return after_timing && one.value("A") == 3;
  };
  const v1::JobResult result = world.run();
  CHECK(text(result.winner()) == "A=1,B=1");
  for (std::int64_t b = 1; b <= 4; ++b) {
    CHECK(trial(world, 3, b).outcome() == v1::WRONG_RESULT);
  }
  CHECK(count_of(result, v1::WRONG_RESULT) == 4);
}

TEST_CASE("a trial whose measured one is not tried any more is measured itself") {
  World world({});
  name_alone(world);
  world.run();
  const std::string gone = trial(world, 3, 1).trial_key();
  world.channel.trials.erase(gone);
  std::erase_if(world.channel.blocks, [&](const auto& entry) { return std::get<0>(entry.first) == gone; });
  to_wire(configuration(3, 4), *world.channel.frame.add_listed());
  world.device.measured.clear();
  const v1::JobResult result = world.run();
  CHECK(text(result.winner()) == "A=3,B=4");
  CHECK(trial(world, 3, 4).measured_as().empty());
}

}  // namespace
}  // namespace cubind::test
