// Reports of agents that do not fit the lease, and agents that report nothing.
#include <catch2/catch.hpp>

#include "base/zstd.hpp"
#include "tests/support/facts.hpp"
#include "tests/support/paths.hpp"
#include "tests/unit/server/scheduler_fixture.hpp"
#include "tuner/spec/cubin_entries.hpp"

namespace cubind::test {
namespace {

using namespace std::chrono_literals;

AgentProfile other_agent() {
  AgentProfile profile = agent_with();
  profile.id = "other";
  profile.devices[0].uuid = "GPU-2";
  return profile;
}

struct Reporting : SchedulerFixture {
  Reporting() {
    options.lease = 10min;
    scheduler = make();
    agent = scheduler->agent_joined(agent_with(), link);
    submit();
  }
  void replace_agent(const AgentProfile& profile) {
    scheduler->agent_leaves(agent);
    scheduler->agent_left(agent);
    agent = scheduler->agent_joined(profile, link);
  }
  const Lease& lease() { return link.leases.back(); }
  bool store(const WorkBatch& batch) {
    return scheduler->store_batch(agent, lease().id, lease().fence, batch);
  }
  bool finish(const WorkResult& result) {
    return scheduler->finish(agent, lease().id, lease().fence, result);
  }
  void report(const std::vector<v1::StageTime>& stages, const std::string& timed) {
    v1::Progress progress;
    progress.mutable_stages()->Assign(stages.begin(), stages.end());
    progress.set_timed_stage(timed);
    REQUIRE(scheduler->progress(agent, lease().id, lease().fence, progress));
  }
  std::vector<v1::StageTime> stages() const {
    const v1::Job job = scheduler->open_jobs().at(0).job.shown();
    return {job.stages().begin(), job.stages().end()};
  }
  std::uint64_t trials() {
    std::uint64_t count = 0;
    store_reader([&](StoreReader& reader) { count = reader.counts().trials; });
    return count;
  }
  void store_reader(const std::function<void(StoreReader&)>& body) { SchedulerFixture::store->read(body); }

  std::uint64_t agent = 0;
};

struct ForgedBatch {
  const char* what;
  void (*forge)(WorkBatch& batch, SchedulerFixture& f);
};

TEST_CASE("a batch that does not fit its lease is refused and nothing of it is stored") {
  const auto forged = GENERATE(
      ForgedBatch{"another problem",
                  [](WorkBatch& b, SchedulerFixture&) { b.trials[0].problem = problem_of(64); }},
      ForgedBatch{"no such configuration",
                  [](WorkBatch& b, SchedulerFixture&) { b.trials[0].configuration.values[0].value = 77; }},
      ForgedBatch{"a tunable less",
                  [](WorkBatch& b, SchedulerFixture&) { b.trials[0].configuration.values.pop_back(); }},
      ForgedBatch{"another configuration's key",
                  [](WorkBatch& b, SchedulerFixture& f) { b.trials[0].key = f.trial("b").key; }},
      ForgedBatch{"a made-up key", [](WorkBatch& b, SchedulerFixture&) { b.trials[0].key = key_of("mine"); }},
      ForgedBatch{
          "another configuration's artifact",
          [](WorkBatch& b, SchedulerFixture& f) { b.trials[0].artifact_key = f.trial("b").artifact_key; }},
      ForgedBatch{"another toolchain",
                  [](WorkBatch& b, SchedulerFixture&) { b.trials[0].toolchain.nvrtc = Digest::of("mine"); }},
      ForgedBatch{"an artifact of another key",
                  [](WorkBatch& b, SchedulerFixture&) { b.artifacts[0].row.key = key_of("mine"); }},
      ForgedBatch{"an artifact of another architecture",
                  [](WorkBatch& b, SchedulerFixture&) { b.artifacts[0].row.architecture = "sm_80"; }},
      ForgedBatch{"an artifact without a trial", [](WorkBatch& b, SchedulerFixture&) { b.trials.clear(); }},
      ForgedBatch{"other bytes than the digest's",
                  [](WorkBatch& b, SchedulerFixture&) { b.artifacts[0].zstd = blob_of("mine").zstd; }},
      ForgedBatch{"samples of another trial",
                  [](WorkBatch& b, SchedulerFixture&) {
                    b.blocks[0].mutable_block()->set_trial_key(bytes_of(Digest::of("another")));
                  }},
      ForgedBatch{"a verification of another trial", [](WorkBatch& b, SchedulerFixture&) {
                    b.verifications[0].mutable_verification()->set_trial_key(bytes_of(Digest::of("another")));
                  }});
  CAPTURE(forged.what);
  Reporting f;
  WorkBatch batch = f.batch("a");
  forged.forge(batch, f);
  CHECK_FALSE(f.store(batch));
  CHECK(f.link.ended.size() == 1);
  CHECK(f.trials() == 0);
  CHECK(f.state() == v1::Job::QUEUED);
}

struct ForgedResult {
  const char* what;
  void (*forge)(WorkResult& result, SchedulerFixture& f);
};

TEST_CASE("a result that does not fit what was stored is refused and makes no record") {
  const auto forged = GENERATE(
      ForgedResult{"a winner that was never tried",
                   [](WorkResult& r, SchedulerFixture& f) { r.record.trial = f.trial("b").key.digest; }},
      ForgedResult{"no winner", [](WorkResult& r, SchedulerFixture&) { r.record.trial = {}; }},
      ForgedResult{"a finalist that was never tried",
                   [](WorkResult& r, SchedulerFixture&) { r.record.finalists = {Digest::of("mine")}; }},
      ForgedResult{"another problem",
                   [](WorkResult& r, SchedulerFixture&) { r.record.question.problem = problem_of(64); }},
      ForgedResult{"faster than its samples",
                   [](WorkResult& r, SchedulerFixture&) {
                     r.record.timing.set_median_us(1.0);
                     r.record.timing.set_low_us(1.0);
                   }},
      ForgedResult{"an interval above its samples",
                   [](WorkResult& r, SchedulerFixture&) { r.record.timing.set_high_us(30.0); }},
      ForgedResult{"an interval without its median",
                   [](WorkResult& r, SchedulerFixture&) { r.record.timing.set_low_us(20.05); }},
      ForgedResult{"more samples than were stored",
                   [](WorkResult& r, SchedulerFixture&) { r.record.timing.set_samples(4); }},
      ForgedResult{"not verified",
                   [](WorkResult& r, SchedulerFixture&) { r.record.verification.set_verified(false); }},
      ForgedResult{"verified by another reference", [](WorkResult& r, SchedulerFixture&) {
                     r.record.verification.set_digest(bytes_of(Digest::of("mine")));
                   }});
  CAPTURE(forged.what);
  Reporting f;
  REQUIRE(f.store(f.batch("a")));
  WorkResult result = f.done("a");
  forged.forge(result, f);
  CHECK_FALSE(f.finish(result));
  CHECK(f.index.snapshot()->record_count().all == 0);
  CHECK(f.state() == v1::Job::QUEUED);
}

struct FalseBatch {
  const char* field;
  void (*tell)(WorkBatch& batch);
};

TEST_CASE("a batch that contradicts itself, its lease or its agent is refused with the field") {
  const auto told = GENERATE(
      FalseBatch{"batch.trials[1].trial_key", [](WorkBatch& b) { b.trials.push_back(b.trials[0]); }},
      FalseBatch{"batch.trials[1].trial_key",
                 [](WorkBatch& b) {
                   b.trials.push_back(b.trials[0]);
                   b.trials[0].outcome = Outcome::WrongResult;
                 }},
      FalseBatch{"batch.artifacts[1].key", [](WorkBatch& b) { b.artifacts.push_back(b.artifacts[0]); }},
      FalseBatch{"batch.blocks[1].index",
                 [](WorkBatch& b) {
                   b.blocks.push_back(b.blocks[0]);
                   b.blocks[1].mutable_block()->set_samples_us(0, 1);
                   b.blocks[1].mutable_block()->mutable_samples_us()->Truncate(1);
                 }},
      FalseBatch{"batch.verifications[1].problem",
                 [](WorkBatch& b) {
                   b.verifications.push_back(b.verifications[0]);
                   b.verifications[0].mutable_verification()->set_outcome(v1::WRONG_RESULT);
                 }},
      FalseBatch{"batch.verifications[0].verification_digest",
                 [](WorkBatch& b) {
                   b.verifications[0].mutable_verification()->set_verification_digest(
                       bytes_of(Digest::of("mine")));
                 }},
      FalseBatch{"batch.verifications[0].problem",
                 [](WorkBatch& b) {
                   b.verifications[0].mutable_verification()->mutable_problem()->mutable_dims(0)->set_value(
                       -1);
                 }},
      FalseBatch{"batch.trials[0].toolchain",
                 [](WorkBatch& b) { b.trials[0].toolchain.name = "nvrtc 99.0"; }},
      FalseBatch{"batch.artifacts[0].toolchain",
                 [](WorkBatch& b) { b.artifacts[0].row.toolchain.name = "nvrtc 99.0"; }},
      FalseBatch{"batch.artifacts[0].entries", [](WorkBatch& b) { b.artifacts[0].row.entries = {"mine"}; }},
      FalseBatch{"batch.artifacts[0].info.entries",
                 [](WorkBatch& b) { b.artifacts[0].row.resources[0].set_entry_symbol("mine"); }});
  CAPTURE(told.field);
  Reporting f;
  WorkBatch batch = f.batch("a");
  told.tell(batch);
  CHECK_FALSE(f.store(batch));
  CHECK_THAT(f.link.why_ended.at(0), Catch::Matchers::Contains(told.field));
  CHECK(f.trials() == 0);
}

TEST_CASE("a toolchain whose library is not the one that the agent offered is refused") {
  Reporting f;
  AgentProfile profile = agent_with();
  profile.toolchains[0].nvrtc = Digest::of("another library");
  f.replace_agent(profile);
  CHECK_FALSE(f.store(f.batch("a")));
  CHECK_THAT(f.link.why_ended.back(), Catch::Matchers::Contains("batch.trials[0].toolchain"));
}

TEST_CASE("a lease that compiles takes no measurements") {
  Reporting f;
  AgentProfile compiler = agent_with();
  compiler.devices.clear();
  f.replace_agent(compiler);
  f.scheduler->submit_compile(
      {f.question(4096), h200_class(), Digest::of("compile"), {f.trial("a").configuration}, "sm_90", 13000});
  const bool measures = GENERATE(true, false);
  WorkBatch batch = f.batch("a");
  if (!measures) {
    batch.trials.clear();
    batch.blocks.clear();
    batch.verifications.clear();
  }
  CHECK(f.store(batch) == !measures);
  CHECK(f.trials() == 0);
}

TEST_CASE(
    "a trial that fails a verification and passes it later is wrong, and its agent goes on with the next") {
  Reporting f;
  WorkBatch wrong = f.batch("a");
  wrong.verifications[0].mutable_verification()->set_outcome(v1::WRONG_RESULT);
  REQUIRE(f.store(wrong));
  WorkBatch passes = f.batch("a");
  passes.blocks[0].mutable_block()->set_index(1);
  REQUIRE(f.store(passes));
  const TrialRow trial = f.trial("a");
  f.store_reader([&](StoreReader& reader) {
    const auto kept = reader.trial(trial.key.digest, trial.kernel);
    CHECK(kept->outcome == Outcome::WrongResult);
    CHECK_THAT(kept->header().detail(), Catch::Matchers::StartsWith("results differ from run to run"));
    CHECK(reader.blocks(trial).size() == 2);
  });
  CHECK_FALSE(f.finish(f.done("a")));
  f.clock.advance(1s);
  f.scheduler->tick();
  REQUIRE(f.link.leases.size() == 2);
  CHECK(f.lease().verifications.at(0).verification().outcome() == v1::WRONG_RESULT);
  REQUIRE(f.store(f.batch("b")));
  CHECK(f.finish(f.done("b")));
  CHECK(f.index.snapshot()->record_count().all == 1);
}

struct FalseResult {
  const char* field;
  void (*tell)(WorkResult& result);
};

TEST_CASE("a result that its trials contradict is refused with the field and none of its counts stays") {
  const auto told = GENERATE(
      FalseResult{"result.provenance.timing.gain_over_default",
                  [](WorkResult& r) { r.record.timing.set_gain_over_default(7); }},
      FalseResult{"result.provenance.timing.gain_over_default",
                  [](WorkResult& r) { r.record.timing.set_gain_over_default(0.1); }},
      FalseResult{"timer \"events\"", [](WorkResult& r) { r.record.timing.set_timer("events"); }},
      FalseResult{"result.provenance.verification.problems[1]",
                  [](WorkResult& r) { to_wire(problem_of(4097), *r.record.verification.add_problems()); }});
  CAPTURE(told.field);
  Reporting f;
  REQUIRE(f.store(f.batch("a")));
  WorkResult result = f.done("a");
  result.told.add_outcomes()->set_count(7);
  result.told.mutable_outcomes(0)->set_outcome(v1::CORRECT);
  *result.told.add_stages() = stage_time("screening", 7);
  told.tell(result);
  CHECK_FALSE(f.finish(result));
  CHECK_THAT(f.link.why_ended.at(0), Catch::Matchers::Contains(told.field));
  CHECK(f.scheduler->open_jobs().at(0).job.shown().outcomes().empty());
  CHECK(f.scheduler->open_jobs().at(0).job.shown().stages().empty());
}

TEST_CASE("an open job has the times of its stages and the current one goes on") {
  Reporting f;
  f.report({stage_time("compiling", 7), stage_time("screening", 5)}, "screening");
  f.clock.advance(100ms);
  CHECK(f.stages() == std::vector{stage_time("compiling", 7), stage_time("screening", 105)});
}

TEST_CASE("no stage of a running job loses time and together they have what was reported") {
  Reporting f;
  f.report({stage_time("compiling", 7), stage_time("verifying", 0)}, "compiling");
  f.clock.advance(100ms);
  f.report({stage_time("compiling", 17), stage_time("verifying", 90)}, "verifying");
  CHECK(f.stages() == std::vector{stage_time("compiling", 107), stage_time("verifying", 0)});
  f.clock.advance(90ms);
  CHECK(f.stages() == std::vector{stage_time("compiling", 107), stage_time("verifying", 90)});
  f.report({stage_time("compiling", 17), stage_time("verifying", 180)}, "compiling");
  f.clock.advance(190ms);
  CHECK(f.stages() == std::vector{stage_time("compiling", 207), stage_time("verifying", 180)});
}

TEST_CASE("what the stages of a lost lease took stays") {
  Reporting f;
  f.report({stage_time("compiling", 7)}, "compiling");
  f.clock.advance(100ms);
  f.scheduler->agent_left(f.agent);
  CHECK(f.stages() == std::vector{stage_time("compiling", 107)});
}

TEST_CASE("bits that changed are not called the same and do not answer who wants the same") {
  Reporting f;
  RecordQuestion question = f.question(4096);
  const bool is_wanted = GENERATE(false, true);
  question.numerics.kind = is_wanted ? Numerics::Kind::Reproducible : Numerics::Kind::Tolerance;
  f.scheduler->cancel(f.lease().job.id);
  f.submit_tune(question, h200_class(), false);
  WorkBatch batch = f.batch("a");
  batch.verifications[0].mutable_verification()->set_same_bits(false);
  REQUIRE(f.store(batch));
  WorkResult result = f.done("a");
  result.record.verification.set_digest(bytes_of(verification_digest(f.spec(), question.numerics)));
  result.record.verification.set_same_bits(!is_wanted);
  CHECK_FALSE(f.finish(result));
  CHECK_THAT(f.link.why_ended.back(), Catch::Matchers::Contains("same_bits"));
}

TEST_CASE("a winner whose trial failed or was not compared with the reference is refused") {
  const bool failed = GENERATE(false, true);
  Reporting f;
  WorkBatch batch = f.batch("a");
  failed ? void(batch.trials[0].outcome = Outcome::WrongResult) : batch.verifications.clear();
  REQUIRE(f.store(batch));
  CHECK_FALSE(f.finish(f.done("a")));
  CHECK(f.index.snapshot()->record_count().all == 0);
}

TEST_CASE("the cubin of an artifact that is stored stays and other bytes for it are refused") {
  Reporting f;
  REQUIRE(f.store(f.batch("a")));
  WorkBatch again = f.batch("a");
  const Blob other = blob_of("another cubin");
  again.artifacts[0].row.cubin = other.cubin;
  again.artifacts[0].row.cubin_bytes = other.cubin_bytes;
  again.artifacts[0].zstd = other.zstd;
  CHECK_FALSE(f.store(again));
  f.store_reader([&](StoreReader& reader) { CHECK_FALSE(reader.has_blob(other.cubin)); });
}

TEST_CASE("an artifact's size and symbols are those of its cubin") {
  Reporting f;
  const std::string cubin = read_file(source_dir() / "tests/golden/cubins/entries.sm_90.cubin");
  WorkBatch batch = f.batch("a");
  ArtifactUpload& upload = batch.artifacts[0];
  const std::string symbol = read_cubin_entries(cubin).begin()->first;
  upload.row.cubin = Digest::of(cubin);
  upload.row.cubin_bytes = cubin.size();
  upload.row.entry_symbols = {symbol};
  upload.row.resources.clear();
  upload.zstd = zstd_compress(cubin);
  SECTION("as they are") { CHECK(f.store(batch)); }
  SECTION("another symbol") {
    upload.row.entry_symbols = {"_Z4minev"};
    CHECK_FALSE(f.store(batch));
    CHECK_THAT(f.link.why_ended.at(0), Catch::Matchers::Contains("batch.artifacts[0].entry_symbols"));
  }
  SECTION("another size of bytes that came before") {
    f.SchedulerFixture::store->write([&](StoreWriter& writer) {
      writer.put_blob({upload.row.cubin, cubin.size(), upload.zstd});
    });
    upload.zstd.clear();
    upload.row.cubin_bytes = 7;
    CHECK_FALSE(f.store(batch));
    CHECK_THAT(f.link.why_ended.at(0), Catch::Matchers::Contains("batch.artifacts[0].info.cubin_bytes"));
  }
}

TEST_CASE("a job whose agent was refused waits for another one and fails after five refusals") {
  Reporting f;
  RecordingLink other_link;
  WorkBatch forged = f.batch("a");
  forged.trials[0].key = key_of("mine");
  for (int i = 0; i < 4; ++i) {
    REQUIRE_FALSE(f.store(forged));
    f.clock.advance(31s);
    f.scheduler->tick();
  }
  REQUIRE(f.link.leases.size() == 5);
  SECTION("another agent gets it and its results count") {
    f.scheduler->agent_joined(other_agent(), other_link);
    f.clock.advance(11min);
    f.scheduler->tick();
    f.clock.advance(31s);
    f.scheduler->tick();
    CHECK(f.link.leases.size() == 5);
    CHECK(other_link.leases.size() == 1);
  }
  SECTION("without one it fails with the reason") {
    REQUIRE_FALSE(f.store(forged));
    CHECK(f.scheduler->open_jobs().empty());
    CHECK_THAT(*f.scheduler->failed_lately(f.lease().job.key),
               Catch::Matchers::Contains("batch.trials[0].trial_key"));
  }
}

TEST_CASE("a lease that is renewed forever and stores nothing new goes to another agent") {
  Reporting f;
  RecordingLink other_link;
  f.scheduler->agent_joined(other_agent(), other_link);
  REQUIRE(f.store(f.batch("a")));
  for (int i = 0; i < 4; ++i) {
    f.clock.advance(5min);
    f.store(f.batch("a"));
    f.scheduler->heartbeat(f.agent, f.lease().id, f.lease().fence);
    f.scheduler->tick();
  }
  CHECK(f.link.leases.size() == 1);
  CHECK(f.link.ended.front() == f.lease().id);
  CHECK(other_link.leases.size() == 1);
}

TEST_CASE("a job may wait for an idle GPU as long as no other agent has a free one") {
  const bool another = GENERATE(false, true);
  Reporting f;
  RecordingLink other_link;
  if (another) {
    f.scheduler->agent_joined(other_agent(), other_link);
  }
  v1::Progress waiting;
  waiting.set_state(v1::Job::WAITING_FOR_IDLE_GPU);
  for (int i = 0; i < 4; ++i) {
    f.scheduler->progress(f.agent, f.lease().id, f.lease().fence, waiting);
    f.clock.advance(5min);
    f.scheduler->tick();
  }
  CHECK(f.link.ended.empty() == !another);
  CHECK(other_link.leases.size() == (another ? 1U : 0U));
}

TEST_CASE("what a leaving agent hands back is granted at once to another and it gets nothing more") {
  Reporting f;
  RecordingLink other_link;
  f.scheduler->agent_joined(other_agent(), other_link);
  f.scheduler->agent_leaves(f.agent);
  WorkResult back;
  back.told.set_status(v1::JobResult::INTERRUPTED);
  const Lease lease = f.lease();
  REQUIRE(f.finish(back));
  CHECK(f.link.leases.size() == 1);
  REQUIRE(other_link.leases.size() == 1);
  CHECK(other_link.leases[0].job.id == lease.job.id);
  CHECK(other_link.leases[0].job.fact.interruptions() == 0);
}

TEST_CASE("a lease ends when its GPU is no longer offered as one of the job's class") {
  Reporting f;
  DeviceFacts facts = h200();
  facts.set_sm_count(7);
  OfferedDevice changed = agent_with().devices[0];
  changed.device = derive_device_class(facts, "facts");
  f.scheduler->agent_devices(f.agent, {changed});
  CHECK(f.link.ended.size() == 1);
  CHECK(f.trials() == 0);
}

}  // namespace
}  // namespace cubind::test
