// What a tuning job tries of a large space, and what it leaves unverified.
#include <catch2/catch.hpp>

#include "base/text.hpp"
#include "plan/search.hpp"
#include "plan/wire.hpp"
#include "tests/support/named_cubin.hpp"
#include "tests/unit/agent/job_world.hpp"
#include "tuner/agent/tuning/tune_job.hpp"

namespace cubind::test {
namespace {

constexpr double kBest = 100;  // at A=3, B=2

std::string numbers_to(int last) {
  std::string list = "[1";
  for (int value = 2; value <= last; ++value) {
    list += ", " + std::to_string(value);
  }
  return list + "]";
}

// 30 * 30 configurations.
struct LargeWorld : World {
  explicit LargeWorld(Behaviour behaviour = {.noise = 0.01}) : World(std::move(behaviour)) {
    std::string& spec = *channel.frame.mutable_spec()->mutable_spec_json();
    for (const char* values : {"[1, 2, 3, 4, 5, 6]", "[1, 2, 3, 4]"}) {
      spec = replaced(spec, values, numbers_to(30));
    }
    spec = replaced(spec, "A * B <= 24", "A * B <= 900");
  }
};

TEST_CASE("a space of more than 600 configurations is searched with 300 trials") {
  LargeWorld world;
  const v1::JobResult result = world.run();
  REQUIRE(result.status() == v1::JobResult::DONE);
  CHECK(result.provenance().timing().median_us() < 1.02 * kBest);
  CHECK(world.channel.trials.size() == kDefaultTrials);
  CHECK(result.search().strategy() == kModelSearch);
  CHECK(result.search().trials() == kDefaultTrials);
  CHECK_FALSE(result.search().complete());
  CHECK(world.channel.told.back().configurations() == kDefaultTrials);
  CHECK(world.channel.told.back().configurations_done() == kDefaultTrials);
}

TEST_CASE("a small space is tried as a whole and the result says so") {
  World world({});
  const v1::SearchSummary search = world.run().search();
  CHECK(search.strategy() == kExhaustiveSearch);
  CHECK(search.trials() == 24);
  CHECK(search.complete());
}

TEST_CASE("a job that lists configurations tries these and the default and measures all of them in rounds") {
  World world({.noise = 0.01});
  for (const Configuration& one : {configuration(3, 2), configuration(4, 2), configuration(6, 4)}) {
    to_wire(one, *world.channel.frame.add_listed());
  }
  const v1::JobResult result = world.run();
  CHECK(text(result.winner()) == "A=3,B=2");
  CHECK(world.channel.trials.size() == 4);
  CHECK(result.finalists_size() == 4);
  CHECK(result.search().strategy() == kListed);
  CHECK(result.search().trials() == 4);
  CHECK_FALSE(result.search().complete());
}

TEST_CASE("so many rounds as are asked for are measured of all that are listed") {
  World world({.noise = 0.01});
  to_wire(configuration(3, 2), *world.channel.frame.add_listed());
  to_wire(configuration(6, 4), *world.channel.frame.add_listed());
  world.channel.frame.set_rounds(75);
  world.run();
  for (const Configuration& one : {configuration(3, 2), configuration(6, 4), configuration(1, 1)}) {
    const std::string key = world.channel.trial(one)->trial_key();
    CHECK(world.channel.blocks.contains({key, v1::SampleBlock::FINAL, 74}));
    CHECK_FALSE(world.channel.blocks.contains({key, v1::SampleBlock::FINAL, 75}));
  }
}

TEST_CASE("an untrusted source has other inputs in every second round and many launches after timing") {
  World world({.noise = 0.01});
  to_wire(configuration(3, 2), *world.channel.frame.add_listed());
  world.channel.frame.set_rounds(4);
  world.channel.frame.set_untrusted(true);
  world.run();
  CHECK(world.device.round_seeds == std::vector<std::uint64_t>{0, 1001, 0, 1003});
  CHECK(world.device.launches == std::map<std::string, std::uint32_t>{{"A=1,B=1", 0}, {"A=3,B=2", 128}});
  CHECK(world.device.untrusted == std::set<std::string>{"A=3,B=2"});
}

TEST_CASE("an untrusted source that prints is refused before it is launched") {
  const bool untrusted = GENERATE(false, true);
  World world({.noise = 0.01});
  world.compiler.cubin = [](const std::string& entry, const std::string& symbol) {
    return named_cubin(symbol, entry, "", "vprintf");
  };
  to_wire(configuration(3, 2), *world.channel.frame.add_listed());
  world.channel.frame.set_untrusted(untrusted);
  world.run();
  const v1::TrialHeader* header = world.channel.trial(configuration(3, 2));
  CHECK(header->outcome() == (untrusted ? v1::CONSTRAINT : v1::CORRECT));
  CHECK(header->detail() == (untrusted ? "prints: a judged source may not" : ""));
  CHECK(std::ranges::any_of(world.device.verified,
                            [](const auto& one) { return one.first.starts_with("A=3,B=2"); }) == !untrusted);
}

TEST_CASE("an untrusted source that has the name of what prints as data and names is measured") {
  World world({.noise = 0.01});
  world.compiler.cubin = [](const std::string& entry, const std::string& symbol) {
    return named_cubin(symbol, entry + "vprintf", "", "vprintf_of_another");
  };
  to_wire(configuration(3, 2), *world.channel.frame.add_listed());
  world.channel.frame.set_untrusted(true);
  world.run();
  CHECK(world.channel.trial(configuration(3, 2))->outcome() == v1::CORRECT);
}

TEST_CASE("a reference that fails once where an iota was exchanged says nothing about an untrusted source") {
  const bool has_iota = GENERATE(true, false);
  const int fails = GENERATE(1, 2);
  World world({.failing_references = fails});
  if (has_iota) {
    std::string& json = *world.channel.frame.mutable_spec()->mutable_spec_json();
    json.replace(json.find("normal"), 6, "iota");
  }
  to_wire(configuration(3, 2), *world.channel.frame.add_listed());
  world.channel.frame.set_untrusted(true);
  world.run();
  CHECK(world.channel.trial(configuration(3, 2))->fault_count() ==
        static_cast<std::uint32_t>(has_iota ? fails - 1 : fails));
  CHECK(world.device.starts == 1 + fails);
}

TEST_CASE("an untrusted source that hangs costs one deadline") {
  const bool untrusted = GENERATE(false, true);
  int hangs = 0;
  World world({.outcome = [&](const Configuration& one, const std::string&) {
    hangs += one == configuration(3, 2) ? 1 : 0;
    return one == configuration(3, 2) ? v1::TIMEOUT : v1::CORRECT;
  }});
  to_wire(configuration(3, 2), *world.channel.frame.add_listed());
  world.channel.frame.set_untrusted(untrusted);
  world.run();
  CHECK(hangs == (untrusted ? 1 : 2));
  CHECK((world.device.measured_within < std::chrono::seconds(10)) == untrusted);
}

TEST_CASE("where a record is measured again its winner stays in a tie whatever has changed since") {
  World world(
      {.time_us = [](const Configuration& one) { return one == configuration(6, 4) ? 100.05 : 100.0; }});
  to_wire(configuration(6, 4), *world.channel.frame.add_listed());
  to_wire(configuration(3, 2), *world.channel.frame.add_listed());
  to_wire(configuration(6, 4), *world.channel.frame.mutable_incumbent());
  world.channel.frame.set_incumbent_trial(std::string(Digest::of("under another driver").view()));
  CHECK(text(world.run().winner()) == "A=6,B=4");
}

TEST_CASE("a budget of trials ends the search and nothing beyond it is compiled") {
  LargeWorld world;
  world.channel.frame.set_max_trials(40);
  const v1::JobResult result = world.run();
  REQUIRE(result.status() == v1::JobResult::DONE);
  CHECK(world.channel.trials.size() == 40);
  CHECK(world.compiler.compiled.size() == 41);  // and the reference
  CHECK(result.search().trials() == 40);
}

TEST_CASE("a budget below the default also holds for a small space") {
  World world({});
  world.channel.frame.set_max_trials(10);
  const v1::JobResult result = world.run();
  CHECK(world.channel.trials.size() == 10);
  CHECK_FALSE(result.search().complete());
}

TEST_CASE("a budget of time ends the search and is part of what was searched") {
  LargeWorld world;
  world.channel.frame.set_max_seconds(20);
  world.device.behaviour().time_us = [&](const Configuration& one) {
    world.clock.advance(std::chrono::milliseconds(500));
    return bowl(one);
  };
  const v1::JobResult result = world.run();
  REQUIRE(result.status() == v1::JobResult::DONE);
  CHECK(world.channel.trials.size() > 5);
  CHECK(world.channel.trials.size() <= 40);
  CHECK(result.search().seconds() == 20);
}

TEST_CASE("the time that earlier leases took counts and stored trials cost none") {
  LargeWorld world;
  world.channel.frame.set_max_trials(30);
  world.run();
  world.channel.frame.set_max_trials(0);
  world.channel.frame.set_max_seconds(20);
  world.channel.frame.set_spent_seconds(20);
  world.device.measured.clear();
  const v1::JobResult result = world.run();
  CHECK(result.status() == v1::JobResult::DONE);
  CHECK(result.search().trials() == 30);
  CHECK(world.device.measured.empty());
}

TEST_CASE("a killed search resumes with the winner of the undisturbed one and measures nothing twice") {
  LargeWorld undisturbed;
  undisturbed.channel.frame.set_max_trials(60);
  const v1::JobResult expected = undisturbed.run();
  for (std::size_t kill = 3; kill < undisturbed.channel.batches; kill += 17) {
    LargeWorld world;
    world.channel.frame.set_max_trials(60);
    world.channel.die_at = kill;
    world.channel.die_after_storing = true;
    REQUIRE_FALSE(world.try_run());
    CHECK(text(world.run().winner()) == text(expected.winner()));
    CHECK(world.channel.trials.size() == undisturbed.channel.trials.size());
    for (const auto& [sample, count] : world.device.measured) {
      REQUIRE(count == 1);
    }
  }
}

TEST_CASE("a larger budget goes on where a smaller one has ended") {
  LargeWorld world;
  world.channel.frame.set_max_trials(40);
  const v1::JobResult first = world.run();
  world.channel.frame.set_incumbent_trial(first.winner_trial());
  *world.channel.frame.mutable_incumbent() = first.winner();
  world.channel.frame.set_max_trials(70);
  world.compiler.compiled.clear();
  world.run();
  CHECK(world.channel.trials.size() == 70);
  CHECK(world.compiler.compiled.size() <= 31);  // and the reference
}

TEST_CASE("a configuration whose first sample is hopeless is not verified and is stored as unverified") {
  World world({});
  const v1::JobResult result = world.run();
  const Configuration slow = configuration(6, 4);
  CHECK_FALSE(world.device.verified.contains("A=6,B=4 at N=1024,T=f32"));
  CHECK(world.channel.trial(slow)->outcome() == v1::UNVERIFIED);
  CHECK(world.channel.trial(configuration(3, 2))->outcome() == v1::CORRECT);
  std::uint32_t verified = 0;
  for (const auto& [key, trial] : world.channel.trials) {
    verified += trial.outcome() == v1::CORRECT ? 1 : 0;
  }
  CHECK(count_of(result, v1::CORRECT) == verified);
  CHECK(count_of(result, v1::UNVERIFIED) == 24 - verified);
  CHECK(verified < 12);
}

TEST_CASE("no wrong result is what others are judged against") {
  // The fastest by far is wrong: were it the measure, nothing else would be verified.
  World world(
      {.time_us = [](const Configuration& one) { return one == configuration(1, 2) ? 1.0 : bowl(one); },
       .wrong = [](const Configuration& one, const Problem&, bool) { return one == configuration(1, 2); }});
  CHECK(text(world.run().winner()) == "A=3,B=2");
  CHECK(world.channel.trial(configuration(1, 2))->outcome() == v1::WRONG_RESULT);
}

TEST_CASE("a trial is watched until it is verified and no longer") {
  World world({});
  world.run();
  CHECK(world.device.watched.contains("A=6,B=4"));
  CHECK(world.device.watched.at("A=3,B=2") == 1);
}

TEST_CASE("a write outside of the buffers is a wrong result without a verification") {
  World world({.damages = [](const Configuration& one) { return one == configuration(3, 2); }});
  const v1::JobResult result = world.run();
  CHECK(text(result.winner()) != "A=3,B=2");
  CHECK(world.channel.trial(configuration(3, 2))->outcome() == v1::WRONG_RESULT);
  CHECK(world.channel.trial(configuration(3, 2))->detail() == "simulated damage");
  CHECK_FALSE(world.device.verified.contains("A=3,B=2 at N=1024,T=f32"));
}

TEST_CASE("the result has the time of each stage") {
  World world({});
  world.device.behaviour().time_us = [&](const Configuration& one) {
    world.clock.advance(std::chrono::milliseconds(10));
    return bowl(one);
  };
  const v1::JobResult result = world.run();
  std::map<std::string, double> stages;
  for (const v1::StageTime& stage : result.stages()) {
    stages[stage.stage()] = stage.ms();
  }
  CHECK(stages.at("screening") >= 240);
  CHECK(stages.at("finalists") >= 100);
  CHECK(stages.at("compiling") == 0);
  CHECK(stages.contains("verifying"));
  CHECK(stages.contains("choosing"));
}

}  // namespace
}  // namespace cubind::test
