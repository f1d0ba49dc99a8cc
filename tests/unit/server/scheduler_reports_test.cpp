// Reports of agents that do not fit the lease, and agents that report nothing.
#include <catch2/catch.hpp>

#include "tests/unit/server/scheduler_fixture.hpp"

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
  const Lease& lease() { return link.leases.back(); }
  bool store(const WorkBatch& batch) {
    return scheduler->store_batch(agent, lease().id, lease().fence, batch);
  }
  bool finish(const WorkResult& result) {
    return scheduler->finish(agent, lease().id, lease().fence, result);
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
                  [](WorkBatch& b, SchedulerFixture&) { b.blocks[0].trial = Digest::of("another"); }},
      ForgedBatch{"a verification of another trial",
                  [](WorkBatch& b, SchedulerFixture&) { b.verifications[0].trial = Digest::of("another"); }});
  CAPTURE(forged.what);
  Reporting f;
  WorkBatch batch = f.batch("a");
  forged.forge(batch, f);
  CHECK_FALSE(f.store(batch));
  CHECK(f.link.ended.size() == 1);
  CHECK(f.trials() == 0);
  CHECK(f.state() == JobState::Queued);
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
      ForgedResult{
          "faster than its samples",
          [](WorkResult& r, SchedulerFixture&) { r.record.timing.median_us = r.record.timing.low_us = 1.0; }},
      ForgedResult{"an interval above its samples",
                   [](WorkResult& r, SchedulerFixture&) { r.record.timing.high_us = 30.0; }},
      ForgedResult{"an interval without its median",
                   [](WorkResult& r, SchedulerFixture&) { r.record.timing.low_us = 20.05; }},
      ForgedResult{"more samples than were stored",
                   [](WorkResult& r, SchedulerFixture&) { r.record.timing.samples = 4; }},
      ForgedResult{"not verified",
                   [](WorkResult& r, SchedulerFixture&) { r.record.verification.verified = false; }},
      ForgedResult{"verified by another reference", [](WorkResult& r, SchedulerFixture&) {
                     r.record.verification.digest = Digest::of("mine");
                   }});
  CAPTURE(forged.what);
  Reporting f;
  REQUIRE(f.store(f.batch("a")));
  WorkResult result = f.done("a");
  forged.forge(result, f);
  CHECK_FALSE(f.finish(result));
  CHECK(f.index.snapshot()->record_count() == 0);
  CHECK(f.state() == JobState::Queued);
}

TEST_CASE("a winner whose trial failed or was not compared with the reference is refused") {
  const bool failed = GENERATE(false, true);
  Reporting f;
  WorkBatch batch = f.batch("a");
  failed ? void(batch.trials[0].outcome = Outcome::WrongResult) : batch.verifications.clear();
  REQUIRE(f.store(batch));
  CHECK_FALSE(f.finish(f.done("a")));
  CHECK(f.index.snapshot()->record_count() == 0);
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
  WorkProgress waiting;
  waiting.state = JobState::WaitingForIdleGpu;
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
  back.status = WorkResult::Status::Interrupted;
  const Lease lease = f.lease();
  REQUIRE(f.finish(back));
  CHECK(f.link.leases.size() == 1);
  REQUIRE(other_link.leases.size() == 1);
  CHECK(other_link.leases[0].job.id == lease.job.id);
  CHECK(other_link.leases[0].job.interruptions == 0);
}

TEST_CASE("a lease ends when its GPU is no longer offered as one of the job's class") {
  Reporting f;
  DeviceFacts facts = h200();
  facts.sm_count = 7;
  OfferedDevice changed = agent_with().devices[0];
  changed.device = derive_device_class(facts, "facts");
  f.scheduler->agent_devices(f.agent, {changed});
  CHECK(f.link.ended.size() == 1);
  CHECK(f.trials() == 0);
}

}  // namespace
}  // namespace cubind::test
