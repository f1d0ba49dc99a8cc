#include <catch2/catch.hpp>

#include "plan/wire.hpp"
#include "tests/unit/agent/job_world.hpp"
#include "tuner/agent/tuning/tune_job.hpp"

namespace cubind::test {
namespace {

Behaviour noisy() { return {.noise = 0.03}; }

std::set<SimulatedDevice::Sample> samples_of(const v1::Batch& batch, const MemoryChannel& channel) {
  std::set<SimulatedDevice::Sample> result;
  auto blocks = channel.blocks;
  for (const v1::SampleBlock& block : batch.blocks()) {
    blocks[{block.trial_key(), block.stage(), block.index()}] = block;
  }
  for (const v1::SampleBlock& block : batch.blocks()) {
    std::uint32_t k = 0;
    for (const auto& [key, before] : blocks) {
      const auto& [trial, stage, index] = key;
      if (trial == block.trial_key() && stage == block.stage() && index < block.index()) {
        k += static_cast<std::uint32_t>(before.samples_us_size());
      }
    }
    for (int i = 0; i < block.samples_us_size(); ++i) {
      result.insert({block.trial_key(), block.stage(), k + static_cast<std::uint32_t>(i)});
    }
  }
  return result;
}

TEST_CASE(
    "a job killed at any batch ends with the winner of the undisturbed one and measures only that batch "
    "twice") {
  const auto measuring_takes = GENERATE(kBetweenBatches, kQuick);
  INFO("a measurement takes " << measuring_takes.count() << " ms");
  World undisturbed(noisy());
  undisturbed.measuring_takes = measuring_takes;
  const v1::JobResult expected = undisturbed.run();
  for (std::size_t kill = 0; kill < undisturbed.channel.batches; ++kill) {
    const bool after_storing = kill % 2 == 1;
    INFO("at batch " << kill << (after_storing ? " after" : " before") << " it was stored");
    World world(noisy());
    world.measuring_takes = measuring_takes;
    world.channel.die_at = kill;
    world.channel.die_after_storing = after_storing;
    REQUIRE_FALSE(world.try_run());
    const auto in_flight =
        after_storing ? std::set<SimulatedDevice::Sample>{} : samples_of(world.channel.lost, world.channel);
    const v1::JobResult resumed = world.run();
    CHECK(text(resumed.winner()) == text(expected.winner()));
    CHECK(resumed.provenance().timing().median_us() == expected.provenance().timing().median_us());
    for (const auto& [sample, count] : world.device.measured) {
      REQUIRE(count == (in_flight.contains(sample) ? 2 : 1));
    }
    REQUIRE(world.channel.blocks.size() == undisturbed.channel.blocks.size());
  }
}

TEST_CASE("quick measurements are sent together") {
  constexpr std::size_t kMostInBatch = kBetweenBatches / kQuick;
  World slow(noisy()), quick(noisy());
  slow.run();
  quick.measuring_takes = kQuick;
  quick.run();
  CHECK(quick.channel.blocks.size() == slow.channel.blocks.size());
  CHECK(quick.channel.batches < slow.channel.batches / 3);
  for (std::size_t at = 0; at < quick.channel.batches; ++at) {
    World world(noisy());
    world.measuring_takes = kQuick;
    world.channel.die_at = at;
    REQUIRE_FALSE(world.try_run());
    std::set<std::uint32_t> rounds;
    std::size_t screened = 0;
    for (const v1::SampleBlock& block : world.channel.lost.blocks()) {
      if (block.stage() == v1::SampleBlock::FINAL) {
        rounds.insert(block.index());
      } else {
        ++screened;
      }
    }
    CHECK(screened + rounds.size() <= kMostInBatch);
  }
}

TEST_CASE("a screening block that takes its time is a batch of its own and a finalists' round is one") {
  World world(noisy());
  std::map<int, int> lost_batches;
  for (world.channel.die_at = 0; !world.try_run(); world.channel.die_at = world.channel.batches + 1) {
    const auto& lost = world.channel.lost.blocks();
    if (lost.empty()) {
      continue;
    }
    ++lost_batches[lost[0].stage()];
    if (lost[0].stage() == v1::SampleBlock::SCREEN) {
      CHECK(lost.size() == 1);
    }
    for (const auto& [key, stored] : world.channel.blocks) {
      const bool final_stage = lost[0].stage() == v1::SampleBlock::FINAL;
      if (final_stage && stored.stage() == lost[0].stage()) {
        CHECK(stored.index() != lost[0].index());
      }
    }
  }
  CHECK(lost_batches[v1::SampleBlock::SCREEN] >= 24 / 2);
  CHECK(lost_batches[v1::SampleBlock::FINAL] >= 10 / 2);
}

TEST_CASE("a job killed twice ends with the winner of the undisturbed one") {
  World undisturbed(noisy());
  const v1::JobResult expected = undisturbed.run();
  for (std::size_t kill = 0; kill + 4 < undisturbed.channel.batches; kill += 5) {
    World world(noisy());
    world.channel.die_at = kill;
    REQUIRE_FALSE(world.try_run());
    world.channel.die_at = world.channel.batches + 2;
    REQUIRE_FALSE(world.try_run());
    CHECK(text(world.run().winner()) == text(expected.winner()));
  }
}

TEST_CASE(
    "a job that is granted again when everything is stored measures and verifies and compiles nothing") {
  World world(noisy());
  const v1::JobResult first = world.run();
  world.device.measured.clear();
  world.device.verified.clear();
  world.compiler.compiled.clear();
  const v1::JobResult second = world.run();
  CHECK(second.winner_trial() == first.winner_trial());
  CHECK(world.device.measured.empty());
  CHECK(world.device.verified.empty());
  CHECK(world.compiler.compiled.size() <= 1);  // the reference is no trial
}

TEST_CASE("a resumed job keeps the tick of its stored blocks on a device that has another") {
  World undisturbed(noisy());
  const v1::JobResult expected = undisturbed.run();
  World world(noisy());
  world.channel.die_at = undisturbed.channel.batches / 2;
  REQUIRE_FALSE(world.try_run());
  world.device.behaviour().tick_us = 9;
  const v1::JobResult resumed = world.run();
  CHECK(text(resumed.winner()) == text(expected.winner()));
  for (const auto& [key, block] : world.channel.blocks) {
    REQUIRE(block.tick_us() == 0.032);
  }
}

TEST_CASE("cubins of known artifacts are fetched and not compiled") {
  World world(noisy());
  world.channel.die_at = 30;
  REQUIRE_FALSE(world.try_run());
  const std::size_t stored = world.channel.artifacts.size();
  world.compiler.compiled.clear();
  world.run();
  CHECK(world.compiler.compiled.size() == 25 - stored);
  CHECK(world.channel.fetched > 0);
}

TEST_CASE("an edited tolerance keeps the timings and repeats the verifications") {
  World world(noisy());
  world.run();
  std::set<std::string> once;  // before timing
  for (const auto& [key, one] : world.channel.verifications) {
    once.insert(one.after_timing() ? "" : one.trial_key());
  }
  once.erase("");
  world.device.measured.clear();
  world.device.verified.clear();
  std::string& spec = *world.channel.frame.mutable_spec()->mutable_spec_json();
  spec.replace(spec.find("1e-5"), 4, "1e-4");
  const v1::JobResult again = world.run();
  const int tails = again.provenance().verification().problems_size() - 1;
  CHECK(world.device.measured.empty());
  CHECK(world.device.verified.size() ==
        once.size() + static_cast<std::size_t>(again.finalists_size() + tails));
}

/// The job's trials as a kernel of another name has them, of the same source.
void move_to_another_kernel(World& world) {
  world.channel.trials.clear();
  world.device.measured.clear();
  world.device.verified.clear();
}

TEST_CASE("trials of another kernel are entered under this one and neither measured nor verified again") {
  World world(noisy());
  const v1::JobResult first = world.run();
  const auto trials = world.channel.trials;
  move_to_another_kernel(world);
  const v1::JobResult second = world.run();
  CHECK(text(second.winner()) == text(first.winner()));
  CHECK(second.provenance().timing().median_us() == first.provenance().timing().median_us());
  CHECK(world.device.measured.empty());
  CHECK(world.device.verified.empty());
  REQUIRE(world.channel.trials.size() == trials.size());
  for (const auto& [key, trial] : trials) {
    CHECK(world.channel.trials.at(key).outcome() == trial.outcome());
  }
}

TEST_CASE("what another kernel's reference has found wrong is verified again and not measured again") {
  World world(noisy());
  const v1::JobResult first = world.run();
  for (auto& [key, verification] : world.channel.verifications) {
    verification.set_verification_digest(std::string(32, 'x'));
    verification.set_outcome(v1::WRONG_RESULT);
  }
  move_to_another_kernel(world);
  CHECK(text(world.run().winner()) == text(first.winner()));
  CHECK(world.device.measured.empty());
  CHECK_FALSE(world.device.verified.empty());
}

TEST_CASE("what fails for another kernel by the same reference and tolerance fails for this one") {
  World world(noisy());
  const v1::JobResult first = world.run();
  for (auto& [key, verification] : world.channel.verifications) {
    if (verification.trial_key() == first.winner_trial()) {
      verification.set_outcome(v1::WRONG_RESULT);
    }
  }
  move_to_another_kernel(world);
  CHECK(text(world.run().winner()) != text(first.winner()));
  CHECK(world.channel.trials.at(first.winner_trial()).outcome() == v1::WRONG_RESULT);
}

TEST_CASE("samples of a kernel that names no work are refused for one whose work takes longer") {
  World world(noisy());
  const v1::JobResult first = world.run();
  move_to_another_kernel(world);
  std::string& spec = *world.channel.frame.mutable_spec()->mutable_spec_json();
  spec.insert(spec.find("\"tolerance\""), R"("work": {"flops": "N*1000000000000"}, )");
  world.run();
  const v1::TrialHeader& trial = world.channel.trials.at(first.winner_trial());
  CHECK(trial.outcome() == v1::WRONG_RESULT);
  CHECK_THAT(trial.detail(),
             Catch::Matchers::StartsWith("time refused: ") && Catch::Matchers::Contains("GFLOP"));
}

void fail_by_another_tolerance(World& world, const std::string& trial) {
  v1::VerificationResult& earlier = world.channel.verifications["earlier"];
  earlier.set_trial_key(trial);
  earlier.set_verification_digest(std::string(32, 'x'));
  earlier.set_outcome(v1::WRONG_RESULT);
}

TEST_CASE("a trial that is out under this kernel's name does not win by what another kernel has of it") {
  const auto outcome = GENERATE(v1::RUNTIME, v1::WRONG_RESULT);
  World world(noisy());
  const v1::JobResult first = world.run();
  world.device.measured.clear();
  v1::TrialHeader& trial = world.channel.trials.at(first.winner_trial());
  trial.set_outcome(outcome);
  trial.set_fault_count(outcome == v1::RUNTIME ? 2 : 0);
  trial.set_detail("time refused: this kernel's work takes longer");
  fail_by_another_tolerance(world, first.winner_trial());
  const v1::JobResult second = world.run();
  CHECK(second.status() == v1::JobResult::DONE);
  CHECK(text(second.winner()) != text(first.winner()));
  CHECK(world.channel.trials.at(first.winner_trial()).outcome() == outcome);
  CHECK(world.device.measured.empty());
}

TEST_CASE(
    "a fault that did not repeat, and what another tolerance found wrong, wins by another kernel's results") {
  const auto outcome = GENERATE(v1::RUNTIME, v1::WRONG_RESULT);
  World world(noisy());
  const v1::JobResult first = world.run();
  v1::TrialHeader& trial = world.channel.trials.at(first.winner_trial());
  trial.set_outcome(outcome);
  trial.set_fault_count(outcome == v1::RUNTIME ? 1 : 0);
  fail_by_another_tolerance(world, first.winner_trial());
  CHECK(text(world.run().winner()) == text(first.winner()));
  CHECK(world.channel.trials.at(first.winner_trial()).outcome() == v1::CORRECT);
}

TEST_CASE("a new tunable value tops up the trials and the finalists meet in new rounds") {
  World world(noisy());
  world.run();
  world.device.measured.clear();
  std::string& spec = *world.channel.frame.mutable_spec()->mutable_spec_json();
  spec.replace(spec.find("\"B\": [1, 2, 3, 4]"), 17, "\"B\": [1, 2, 3, 4, 5]");
  spec.replace(spec.find("A * B <= 24"), 11, "A * B <= 30");
  world.device.behaviour().time_us = [](const Configuration& one) {
    return one.value("B") == 5 && one.value("A") == 3 ? 99.0 : bowl(one);
  };
  CHECK(text(world.run().winner()) == "A=3,B=5");
  for (const auto& [sample, count] : world.device.measured) {
    const auto& [trial, stage, k] = sample;
    if (stage == v1::SampleBlock::FINAL) {
      continue;
    }
    CHECK(*configuration_from_wire(world.channel.trials.at(trial).configuration(), "").value("B") == 5);
  }
}

TEST_CASE("blocks of another timer are not compared with") {
  World world(noisy());
  world.run();
  for (auto& [key, block] : world.channel.blocks) {
    block.set_timer("graph");
  }
  world.device.measured.clear();
  world.run();
  CHECK_FALSE(world.device.measured.empty());
}

}  // namespace
}  // namespace cubind::test
