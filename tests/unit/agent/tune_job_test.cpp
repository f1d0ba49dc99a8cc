#include "tuner/agent/tuning/tune_job.hpp"

#include <catch2/catch.hpp>

#include "base/random.hpp"
#include "plan/wire.hpp"
#include "tests/unit/agent/job_world.hpp"
#include "tuner/agent/tuning/job_progress.hpp"

using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;

namespace cubind::test {
namespace {

TEST_CASE("the fastest configuration wins with its evidence") {
  World world({.noise = 0.01});
  const v1::JobResult result = world.run();
  REQUIRE(result.status() == v1::JobResult::DONE);
  CHECK(text(result.winner()) == "A=3,B=2");
  const v1::Provenance& provenance = result.provenance();
  CHECK(provenance.timing().median_us() == Approx(100).epsilon(0.01));
  CHECK(provenance.timing().low_us() <= provenance.timing().median_us());
  CHECK(provenance.timing().high_us() >= provenance.timing().median_us());
  CHECK(provenance.timing().samples() >= 5);
  CHECK(provenance.timing().sm_mhz() == 1980);
  CHECK(provenance.timing().gain_over_default() == Approx(1.728).epsilon(0.02));
  CHECK(provenance.timing().timer() == "cupti");
  CHECK(provenance.timing().tick_us() == 0.032);
}

TEST_CASE("each configuration is compiled once and the calls of NVRTC are counted") {
  World world({});
  world.run();
  CHECK(world.compiler.compiled.size() == 25);  // 24 and the reference
  for (const auto& [entry, count] : world.compiler.compiled) {
    CHECK(count == 1);
  }
  CHECK(world.channel.told.back().nvrtc_calls() == 25);
}

TEST_CASE("compiles are under way while the device measures") {
  World world({});
  world.options.compile_window = 4;
  std::vector<std::size_t> under_way;
  world.device.behaviour().time_us = [&](const Configuration& one) {
    under_way.push_back(world.compiler.under_way());
    return bowl(one);
  };
  world.run();
  CHECK(under_way.front() == 3);
  CHECK(under_way.back() == 0);
}

TEST_CASE("a job that no caller waits for compiles in the background until one does") {
  World world({});
  world.channel.awaited = false;
  world.options.compile_window = 4;
  world.device.behaviour().time_us = [&](const Configuration& one) {
    world.channel.awaited = true;
    return bowl(one);
  };
  REQUIRE(world.run().status() == v1::JobResult::DONE);
  CHECK(world.compiler.submitted.front() == CompilePriority::Background);
  CHECK(world.compiler.submitted.back() == CompilePriority::Tuning);
  REQUIRE(world.compiler.raised.size() == 3);  // what was under way
  CHECK(world.compiler.raised.front() == CompilePriority::Tuning);
}

TEST_CASE("hopeless configurations get one sample and the default three") {
  World world({});
  world.run();
  const auto samples = [&](const Configuration& which) {
    int count = 0;
    for (const auto& [key, block] : world.channel.blocks) {
      const bool screen = block.stage() == v1::SampleBlock::SCREEN;
      if (screen && block.trial_key() == world.channel.trial(which)->trial_key()) {
        count += block.samples_us_size();
      }
    }
    return count;
  };
  CHECK(samples(configuration(6, 4)) == 1);
  CHECK(samples(configuration(1, 1)) == 3);
}

TEST_CASE("the default competes in the finals and gets no more samples than it takes to lose") {
  World world({});
  world.run();
  int rounds = 0;
  for (const auto& [key, block] : world.channel.blocks) {
    const bool final_stage = block.stage() == v1::SampleBlock::FINAL;
    if (final_stage && block.trial_key() == world.channel.trial(configuration(1, 1))->trial_key()) {
      ++rounds;
    }
  }
  CHECK(rounds == 10);
}

TEST_CASE("a kernel of two microseconds is measured several times a round") {
  World world({.time_us = [](const Configuration& one) { return bowl(one) / 50; }, .noise = 0.03});
  const v1::JobResult result = world.run();
  std::uint32_t samples = 0;
  for (const auto& [key, block] : world.channel.blocks) {
    if (block.stage() != v1::SampleBlock::FINAL) {
      continue;
    }
    CHECK(block.samples_us_size() == 12);
    samples += block.trial_key() == result.winner_trial() ? 12 : 0;
  }
  CHECK(samples >= 120);
  CHECK(result.provenance().timing().samples() == samples);
}

TEST_CASE("inside the tie margin the default wins") {
  World world(
      {.time_us = [](const Configuration& one) { return one == configuration(1, 1) ? 100.05 : 100.0; }});
  CHECK(text(world.run().winner()) == "A=1,B=1");
}

TEST_CASE("inside the tie margin the incumbent stays") {
  World first({});
  first.run();
  World second(
      {.time_us = [](const Configuration& one) { return one == configuration(6, 4) ? 100.05 : 100.0; }});
  second.channel.frame.set_incumbent_trial(first.channel.trial(configuration(6, 4))->trial_key());
  to_wire(configuration(6, 4), *second.channel.frame.mutable_incumbent());
  CHECK(text(second.run().winner()) == "A=6,B=4");
}

TEST_CASE("the finalists of a round are measured in an order that changes from round to round") {
  // Four finalists that are equally fast, and the default, which loses soon.
  World world({.time_us = [](const Configuration& one) { return one.value("A") == 3 ? 100.0 : 200.0; },
               .noise = 0.03});
  world.run();
  std::set<std::vector<std::string>> orders;
  for (const std::vector<std::string>& round : world.device.rounds) {
    if (round.size() == 4) {
      orders.insert(round);
    }
  }
  CHECK(orders.size() >= 3);
}

TEST_CASE("a block of more threads than its registers allow is an outcome and is never launched") {
  World world({.max_threads = [](const Configuration& one) { return one == configuration(3, 2) ? 31 : 32; }});
  CHECK(text(world.run().winner()) != "A=3,B=2");
  const v1::TrialHeader* trial = world.channel.trial(configuration(3, 2));
  REQUIRE(trial);
  CHECK(trial->outcome() == v1::CONSTRAINT);
  CHECK_THAT(trial->detail(),
             Catch::Contains("a block of 32 threads, but with 255 registers per thread at most 31"));
  CHECK_FALSE(world.channel.blocks.contains({trial->trial_key(), v1::SampleBlock::SCREEN, 0}));
}

TEST_CASE("what may still win is verified once before it is screened and each finalist again after timing") {
  World world({});
  world.run();
  CHECK(world.device.verified.at("A=3,B=2 at N=1024,T=f32") == 1);
  CHECK(world.device.verified.at("A=3,B=2 at N=1024,T=f32 after") == 1);
  CHECK(world.device.verified.at("A=1,B=1 at N=1024,T=f32 after") == 1);  // the default
  CHECK(world.device.verified.count("A=3,B=3 at N=1024,T=f32 after") == 0);
  world.run();
  CHECK(world.device.verified.at("A=1,B=1 at N=1024,T=f32 after") == 1);
}

TEST_CASE("a finalist that is right at its first launch and wrong at a later one is a wrong result") {
  World world({.wrong = [](const Configuration& one, const Problem&, bool after_timing) {
    return after_timing && one != configuration(3, 2);
  }});
  const v1::JobResult result = world.run();
  CHECK(text(result.winner()) == "A=3,B=2");
  const v1::TrialHeader* loser = world.channel.trial(configuration(1, 1));
  CHECK(loser->outcome() == v1::WRONG_RESULT);
  CHECK_THAT(loser->detail(),
             Catch::StartsWith("N=1024,T=f32: right at its first launch, wrong at a later one"));
}

TEST_CASE("the verification after timing has other inputs than the one before") {
  World world({});
  world.run();
  const auto& seeds = world.device.input_seeds;
  REQUIRE(seeds.at(false).size() == 1);
  REQUIRE(seeds.at(true).size() == 1);
  CHECK(seeds.at(false) != seeds.at(true));
}

TEST_CASE("a screened trial keeps its samples and the best it was judged against and is no final time") {
  World world({});
  world.run();
  const std::string hopeless = world.channel.trial(configuration(6, 4))->trial_key();
  const auto block = world.channel.blocks.find({hopeless, v1::SampleBlock::SCREEN, 0});
  REQUIRE(block != world.channel.blocks.end());
  CHECK(block->second.samples_us(0) == Approx(bowl(configuration(6, 4))));
  CHECK(block->second.judged_against_us() == Approx(100));
  CHECK_FALSE(world.channel.blocks.contains({hopeless, v1::SampleBlock::FINAL, 0}));
}

TEST_CASE("the winner of a bucket is verified at the tails and the answer lists them") {
  World world({});
  const v1::VerificationSummary summary = world.run().provenance().verification();
  CHECK(summary.verified());
  CHECK(summary.after_timing());
  CHECK(summary.reference() == "kernel");
  CHECK(summary.problems_size() == 4);  // the measured one, 257, a prime, one that 3 does not divide
  CHECK(world.device.verified.count("A=3,B=2 at N=257,T=f32 after") == 1);
}

TEST_CASE("a winner that is wrong at a tail is out and the next finalist is taken") {
  World world({.time_us = [](const Configuration& one) { return one == configuration(3, 2) ? 100.0 : 101.0; },
               .wrong = [](const Configuration& one, const Problem& problem,
                           bool) { return one == configuration(3, 2) && problem.dim("N") == 257; }});
  const v1::JobResult result = world.run();
  CHECK(text(result.winner()) == "A=1,B=1");
  CHECK(world.channel.trial(configuration(3, 2))->outcome() == v1::WRONG_RESULT);
}

TEST_CASE("a configuration with a wrong result is stored as such and has no sample but its first") {
  World world(
      {.wrong = [](const Configuration& one, const Problem&, bool) { return one == configuration(3, 2); }});
  const v1::JobResult result = world.run();
  CHECK(text(result.winner()) != "A=3,B=2");
  CHECK(count_of(result, v1::WRONG_RESULT) == 1);
  for (const auto& [key, block] : world.channel.blocks) {
    if (block.trial_key() == world.channel.trial(configuration(3, 2))->trial_key()) {
      CHECK(block.stage() == v1::SampleBlock::SCREEN);
      CHECK(block.samples_us_size() == 1);
    }
  }
}

TEST_CASE("a job whose reference takes other arguments fails before anything is launched") {
  World world({});
  world.compiler.mangled = [](const std::string& entry) {
    return entry.starts_with("reference") ? std::string("_Z9referencePKd") : "_Z" + entry;
  };
  const v1::JobResult result = world.run();
  CHECK(result.status() == v1::JobResult::FAILED);
  CHECK_THAT(result.error(),
             EndsWith("/reference/launches/0/arguments: has 2, the entry takes 1: (double const*)"));
  CHECK(world.channel.blocks.empty());
}

TEST_CASE("a configuration that does not compile is an outcome and the others go on") {
  World world({});
  world.compiler.refuses = [](const std::string& entry) { return entry == "simulated<float, 3, 2>"; };
  const v1::JobResult result = world.run();
  CHECK(result.status() == v1::JobResult::DONE);
  CHECK(count_of(result, v1::COMPILE) == 1);
  CHECK(world.channel.trial(configuration(3, 2))->detail() == "refused");
}

/// What cannot be compressed.
std::string noise_of(std::size_t bytes) {
  Random random(1);
  std::string noise(bytes, '\0');
  for (char& byte : noise) {
    byte = static_cast<char>(random.below(256));
  }
  return noise;
}

TEST_CASE("an artifact of several trials is sent once") {
  World world({});
  world.measuring_takes = kQuick;
  std::string& spec = *world.channel.frame.mutable_spec()->mutable_spec_json();
  spec.replace(spec.find(", {B}>"), 6, ">");
  spec.replace(spec.find("[\"32\"]"), 6, "[\"32 * B\"]");
  CHECK(text(world.run().winner()) == "A=3,B=2");
  CHECK(world.channel.trials.size() == 24);
  CHECK(world.channel.artifacts.size() == 6);
}

TEST_CASE("cubins that would make a batch too large together are put in chunks before it") {
  World world({});
  world.measuring_takes = kQuick;
  world.compiler.more = [noise = noise_of(1 << 20)](const std::string&) { return noise; };
  CHECK(text(world.run().winner()) == "A=3,B=2");
  CHECK(world.channel.put > 0);
  CHECK(world.channel.put < static_cast<int>(world.channel.artifacts.size()));
  for (const auto& [key, artifact] : world.channel.artifacts) {
    CHECK(world.channel.cubins.contains(artifact.info().digest()));
  }
}

TEST_CASE("a cubin above 3 MiB is put in chunks before the batch that names it") {
  // Noise has a few bytes more when it is compressed, and the batch has the trial.
  const auto [bytes, put] = GENERATE(std::pair{(3 << 20) - 10'000, 0}, std::pair{(3 << 20) + 1, 1});
  World world({});
  world.compiler.more = [noise = noise_of(static_cast<std::size_t>(bytes))](const std::string& entry) {
    return entry == "simulated<float, 3, 2>" ? noise : std::string();
  };
  CHECK(text(world.run().winner()) == "A=3,B=2");
  CHECK(world.channel.put == put);
  const v1::TrialHeader* trial = world.channel.trial(configuration(3, 2));
  const v1::ArtifactInfo& info = world.channel.artifacts.at(trial->artifact_key()).info();
  CHECK(info.cubin_bytes() > static_cast<std::uint64_t>(bytes));
  CHECK(world.channel.cubins.contains(info.digest()));
}

TEST_CASE("a time below the floor is no time and its refusal is stored with both figures") {
  World world({.below_floor = [](const Configuration& one) { return one == configuration(3, 2); }});
  const v1::JobResult result = world.run();
  CHECK(text(result.winner()) != "A=3,B=2");
  const v1::TrialHeader* trial = world.channel.trial(configuration(3, 2));
  CHECK(trial->outcome() == v1::WRONG_RESULT);
  CHECK(trial->detail() == "time refused: 0.1 us is below the floor of 3.4 us");
  for (const auto& [key, block] : world.channel.blocks) {
    CHECK(block.trial_key() != trial->trial_key());
  }
}

TEST_CASE("where results must be reproducible a configuration whose bits differ cannot win") {
  World world({.bits_differ = [](const Configuration& one) { return one == configuration(3, 2); }});
  CHECK(text(world.run().winner()) == "A=3,B=2");
  World strict(world.device.behaviour());
  strict.channel.frame.mutable_numerics()->set_kind(v1::Numerics::REPRODUCIBLE);
  CHECK(text(strict.run().winner()) != "A=3,B=2");
  CHECK(strict.channel.trial(configuration(3, 2))->outcome() == v1::CORRECT);
}

TEST_CASE("throttled blocks are marked in the answer") {
  World world({.throttled = true});
  CHECK(world.run().provenance().timing().throttled());
}

TEST_CASE("a job without a correct configuration fails and says so") {
  World world({.wrong = [](const Configuration&, const Problem&, bool) { return true; }});
  const v1::JobResult result = world.run();
  CHECK(result.status() == v1::JobResult::FAILED);
  CHECK_THAT(result.error(), StartsWith("no configuration survived: 24 wrong_result; A="));
  CHECK(count_of(result, v1::WRONG_RESULT) == 24);
}

TEST_CASE("a job whose configurations do not compile says what the compiler says") {
  World world({});
  world.compiler.refuses = [](const std::string&) { return true; };
  const v1::JobResult result = world.run();
  CHECK_THAT(result.error(), StartsWith("no configuration survived: 24 compile; A="));
  CHECK_THAT(result.error(), EndsWith(": refused"));
}

TEST_CASE("a spec that cannot be parsed fails the job with its place") {
  World world({});
  world.channel.frame.mutable_spec()->set_spec_json("{}");
  const v1::JobResult result = world.run();
  CHECK(result.status() == v1::JobResult::FAILED);
  CHECK(result.error().find("simulated.json") != std::string::npos);
}

TEST_CASE("progress names every stage") {
  World world({});
  world.run();
  CHECK(world.channel.stages ==
        std::set<std::string>{"compiling", "verifying", "screening", "finalists", "commit"});
  const auto& stages = world.channel.told.back().stages();
  CHECK(std::ranges::find(stages, "finalists", &v1::StageTime::stage) != stages.end());
}

TEST_CASE("each change of what is timed is reported at once or soon") {
  World world({});
  JobProgress progress(world.channel, world.clock);
  std::vector<std::string> stages;
  for (int i = 0; i < 3; ++i) {
    progress.stage("compiling");
    progress.stage("screening");
    progress.timed_stage("choosing");
    stages.insert(stages.end(), {"compiling", "screening", "choosing"});
  }
  std::vector<std::string> timed;
  std::ranges::transform(world.channel.told, std::back_inserter(timed), &v1::Progress::timed_stage);
  CHECK(timed == stages);
}

TEST_CASE("each stage is timed") {
  World world({});
  world.run();
  std::set<std::string> timed;
  std::ranges::transform(world.channel.told, std::inserter(timed, timed.end()), &v1::Progress::timed_stage);
  CHECK(timed == std::set<std::string>{"opening", "choosing", "compiling", "verifying", "screening",
                                       "finalists", "commit"});
}

TEST_CASE("a job is over before its device worker ends, and the next job uses that worker") {
  World world({});
  REQUIRE(world.run().status() == v1::JobResult::DONE);
  CHECK(world.device.running);
  *world.channel.frame.mutable_problem() = simulated_problem(900);
  REQUIRE(world.run().status() == v1::JobResult::DONE);
  CHECK(world.device.starts == 1);
}

TEST_CASE("a worker in which a kernel failed does not stay") {
  World world(
      {.wrong = [](const Configuration& one, const Problem&, bool) { return one == configuration(3, 2); }});
  REQUIRE(world.run().status() == v1::JobResult::DONE);
  CHECK_FALSE(world.device.running);
}

TEST_CASE("a worker that stays is looked at like a fresh one: a foreign process ends it") {
  World world({});
  REQUIRE(world.run().status() == v1::JobResult::DONE);
  world.device.behaviour().foreign = [call = 0]() mutable { return ++call <= 2; };
  *world.channel.frame.mutable_problem() = simulated_problem(900);
  REQUIRE(world.run().status() == v1::JobResult::DONE);
  CHECK(world.device.starts == 2);
}

}  // namespace
}  // namespace cubind::test
