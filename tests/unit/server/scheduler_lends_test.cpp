// Callers lend their GPUs to jobs.
#include <catch2/catch.hpp>

#include "tests/unit/server/scheduler_fixture.hpp"

namespace cubind::test {
namespace {

using namespace std::chrono_literals;

AgentProfile lend_agent(const std::vector<std::string>& gpus = {"GPU-1"}) {
  AgentProfile profile = agent_with();
  const OfferedDevice device = profile.devices.at(0);
  profile.devices.clear();
  for (const std::string& gpu : gpus) {
    profile.devices.push_back(device);
    profile.devices.back().uuid = gpu;
  }
  return profile;
}

LentGpu lent_by(std::uint32_t process, const std::string& gpu = "GPU-1") { return {gpu, process, "here", 0}; }

v1::Progress waiting(bool is_lent = false) {
  v1::Progress progress;
  progress.set_state(v1::Job::WAITING_FOR_IDLE_GPU);
  progress.set_waits_because("process 7 uses the GPU");
  progress.set_is_lent(is_lent);
  return progress;
}

std::vector<std::uint32_t> last_told(const RecordingLink& link) {
  std::vector<std::uint32_t> processes;
  for (const LentGpu& one : link.told_lends.back()) {
    processes.push_back(one.process);
  }
  return processes;
}

TEST_CASE("agents that offer a GPU get the list of its lends with every change") {
  SchedulerFixture f;
  f.scheduler->agent_joined(lend_agent(), f.link);
  const auto first = f.scheduler->lend(lent_by(50));
  const auto second = f.scheduler->lend(lent_by(60));
  CHECK(last_told(f.link) == std::vector<std::uint32_t>{50, 60});
  f.scheduler->end_lend(first);
  CHECK(last_told(f.link) == std::vector<std::uint32_t>{60});
  f.scheduler->end_lend(second);
  CHECK(last_told(f.link).empty());
}

TEST_CASE("an agent that does not offer the GPU gets no list") {
  SchedulerFixture f;
  f.scheduler->agent_joined(lend_agent({"GPU-2"}), f.link);
  const std::size_t told = f.link.told_lends.size();
  f.scheduler->lend(lent_by(50));
  CHECK(f.link.told_lends.size() == told);
}

TEST_CASE("an agent that joins or offers another GPU gets the lends that there are") {
  SchedulerFixture f;
  f.scheduler->lend(lent_by(50, "GPU-2"));
  const auto agent = f.scheduler->agent_joined(lend_agent({"GPU-1"}), f.link);
  CHECK(last_told(f.link).empty());
  f.scheduler->agent_devices(agent, lend_agent({"GPU-2"}).devices);
  CHECK(last_told(f.link) == std::vector<std::uint32_t>{50});
}

TEST_CASE("a job is granted on the lent one of two GPUs") {
  SchedulerFixture f;
  f.scheduler->agent_joined(lend_agent({"GPU-1", "GPU-2"}), f.link);
  f.scheduler->lend(lent_by(50, "GPU-2"));
  f.submit();
  CHECK(f.link.leases.at(0).gpu_uuid == "GPU-2");
}

TEST_CASE("a job that waits for an idle GPU moves to one that is lent") {
  SchedulerFixture f;
  const auto agent = f.scheduler->agent_joined(lend_agent({"GPU-1", "GPU-2"}), f.link);
  f.submit();
  const Lease first = f.link.leases.at(0);
  REQUIRE(first.gpu_uuid == "GPU-1");
  f.scheduler->progress(agent, first.id, first.fence, waiting());
  f.scheduler->lend(lent_by(50, "GPU-2"));
  CHECK(f.link.ended == std::vector{first.id});
  REQUIRE(f.link.leases.size() == 2);
  CHECK(f.link.leases[1].gpu_uuid == "GPU-2");
  CHECK(f.scheduler->open_jobs().at(0).job.fact.interruptions() == 0);
}

TEST_CASE("a job that measures does not move to a lent GPU") {
  SchedulerFixture f;
  f.scheduler->agent_joined(lend_agent({"GPU-1", "GPU-2"}), f.link);
  f.submit();
  f.scheduler->lend(lent_by(50, "GPU-2"));
  CHECK(f.link.leases.size() == 1);
}

TEST_CASE("a waiter sees who uses the GPU until the job goes on") {
  SchedulerFixture f;
  const auto agent = f.scheduler->agent_joined(lend_agent(), f.link);
  f.submit();
  const Lease lease = f.link.leases.at(0);
  f.scheduler->progress(agent, lease.id, lease.fence, waiting());
  CHECK(f.scheduler->open_jobs().at(0).waits_because == "process 7 uses the GPU");
  f.scheduler->progress(agent, lease.id, lease.fence, {});
  CHECK(f.scheduler->open_jobs().at(0).waits_because.empty());
}

// Ranks of a job that share a GPU come to the same call within seconds.
TEST_CASE("a lender waits until the agent has found its GPU in use for ten seconds nevertheless") {
  SchedulerFixture f;
  const auto agent = f.scheduler->agent_joined(lend_agent(), f.link);
  f.submit();
  const Lease lease = f.link.leases.at(0);
  f.scheduler->progress(agent, lease.id, lease.fence, waiting());
  const auto now = [&] { return f.scheduler->open_jobs().at(0); };
  CHECK(ends_the_wait(now()));
  f.scheduler->lend(lent_by(50));
  CHECK_FALSE(ends_the_wait(now(), true));
  f.scheduler->progress(agent, lease.id, lease.fence, waiting(true));
  f.clock.advance(std::chrono::seconds(9));
  f.scheduler->tick();
  CHECK_FALSE(ends_the_wait(now(), true));
  f.clock.advance(std::chrono::seconds(1));
  f.scheduler->tick();
  CHECK(ends_the_wait(now(), true));

  f.scheduler->lend(lent_by(60));
  CHECK_FALSE(ends_the_wait(now(), true));
  SECTION("those that come in the next minute do not wait again") {
    f.scheduler->progress(agent, lease.id, lease.fence, waiting(true));
    CHECK(ends_the_wait(now(), true));
  }
  SECTION("once the GPU was measured on, they do") {
    f.scheduler->progress(agent, lease.id, lease.fence, {});
    f.scheduler->progress(agent, lease.id, lease.fence, waiting(true));
    CHECK_FALSE(ends_the_wait(now(), true));
  }
  SECTION("later ones do") {
    f.clock.advance(std::chrono::seconds(61));
    f.scheduler->progress(agent, lease.id, lease.fence, waiting(true));
    CHECK_FALSE(ends_the_wait(now(), true));
  }
}

TEST_CASE("a lend serves jobs of the GPU's class if an agent offers it") {
  SchedulerFixture f;
  const auto lend = f.scheduler->lend(lent_by(50));
  const Digest device_class = h200_class().digest;
  CHECK_FALSE(f.scheduler->lent().serves(lend, device_class));
  f.scheduler->agent_joined(lend_agent(), f.link);
  CHECK(f.scheduler->lent().serves(lend, device_class));
  CHECK_FALSE(f.scheduler->lent().serves(lend, Digest::of("another class")));
  f.scheduler->end_lend(lend);
  CHECK_FALSE(f.scheduler->lent().serves(lend, device_class));
}

}  // namespace
}  // namespace cubind::test
