#include "server/jobs/placement.hpp"

#include <catch2/catch.hpp>

#include "tests/support/manual_clock.hpp"
#include "tests/unit/server/rows.hpp"
#include "tests/unit/server/vector_add_library.hpp"
#include "tuner/spec/keys.hpp"

namespace cubind::test {
namespace {

using namespace std::chrono_literals;

struct PlacementFixture {
  ManualClock clock;
  VectorAddLibrary kernels{clock};
  JoinedAgents agents;
  OpenJobs jobs{clock};
  Failures failures{kernels, agents, clock, 10min};
  LentGpus lent{agents};
  Leases leases{clock, 15s};
  Placement placement{agents, leases, failures, lent, 2};
  OpenJob& job = add(v1::Job::TUNE, 4096);

  OpenJob& add(JobKind kind, std::int64_t n) {
    JobRow row;
    row.id = std::to_string(jobs.all().size());
    row.kind = kind;
    row.question = question_of(n);
    row.question.device_class = h200_class().digest;
    row.key = job_key(row.question);
    const ToolchainNeed compile{{}, "sm_90", 13000};
    return jobs.add(std::move(row), h200_class(), kind == v1::Job::TUNE ? ToolchainNeed{} : compile);
  }
  // An agent with one GPU, "GPU-<number>".
  OfferedDevice& join(std::uint64_t number, std::uint64_t memory = 0, const std::string& consent = "idle") {
    AgentProfile& profile = agents[number].profile;
    profile.devices = {
        {"GPU-" + std::to_string(number), h200_class(), {13000, "580.159.04"}, consent, memory}};
    profile.toolchains = {{"nvrtc 13.0", 13, 0, {"sm_90"}}};
    return profile.devices[0];
  }
  void lease(OpenJob& to, std::uint64_t agent, const std::string& gpu) {
    leases.begin(
        to,
        {"lease-" + to.row.id, agent, gpu, {}, clock.steady_now(), clock.steady_now() + 15s, nullptr, {}});
  }
  // The agent and the GPU where it can run now.
  std::string free_target() const {
    const auto target = placement.targets(job).free;
    return target ? target->device->uuid : "none";
  }
};

TEST_CASE_METHOD(PlacementFixture,
                 "a job runs on the first GPU of its class that is not leased and may be measured on") {
  join(1);
  join(2, 0, "never");
  join(3).device.digest = Digest::of("another class");
  join(4);
  CHECK(free_target() == "GPU-1");
  lease(add(v1::Job::TUNE, 1024), 1, "GPU-1");
  CHECK(free_target() == "GPU-4");
}

TEST_CASE_METHOD(PlacementFixture, "a GPU that two agents offer has one lease, whichever of them holds it") {
  join(1);
  join(2).uuid = "GPU-1";
  lease(add(v1::Job::TUNE, 1024), 2, "GPU-1");
  CHECK(free_target() == "none");
}

TEST_CASE_METHOD(PlacementFixture,
                 "without a GPU of its class there is no place for a job and with a busy one there is") {
  CHECK_FALSE(placement.targets(job).any_exists);
  join(1);
  lease(add(v1::Job::TUNE, 1024), 1, "GPU-1");
  CHECK(placement.targets(job).any_exists);
  CHECK(free_target() == "none");
}

TEST_CASE_METHOD(PlacementFixture,
                 "a job that needs more memory waits for the GPU that has it while a smaller one is free") {
  job.needs_bytes = 5000;
  join(1, 4999);
  join(2, 5000);
  CHECK(free_target() == "GPU-2");
  lease(add(v1::Job::TUNE, 1024), 2, "GPU-2");
  CHECK(free_target() == "none");
}

TEST_CASE_METHOD(PlacementFixture,
                 "a job that no GPU has the memory for runs where it can and one that says nothing has it") {
  job.needs_bytes = 5000;
  join(1, 4999);
  CHECK(free_target() == "GPU-1");
  join(2, 0);
  CHECK(free_target() == "GPU-2");
}

TEST_CASE_METHOD(PlacementFixture, "a job waits behind foreign use only where every GPU for it is held so") {
  OpenJob& other = add(v1::Job::TUNE, 1024);
  join(1);
  lease(other, 1, "GPU-1");
  CHECK_FALSE(placement.waits_behind_foreign_use(job));
  other.row.state = v1::Job::WAITING_FOR_IDLE_GPU;
  CHECK(placement.waits_behind_foreign_use(job));
  join(2);
  CHECK_FALSE(placement.waits_behind_foreign_use(job));
}

TEST_CASE_METHOD(PlacementFixture,
                 "more room is another GPU of the class with so much and never the job's own") {
  join(1, 9000);
  lease(job, 1, "GPU-1");
  CHECK_FALSE(placement.more_room_exists(job, 5000));
  join(2, 5000, "never");
  CHECK_FALSE(placement.more_room_exists(job, 5000));
  join(3, 5000);
  CHECK(placement.more_room_exists(job, 5000));
  CHECK_FALSE(placement.more_room_exists(job, 5001));
}

TEST_CASE_METHOD(PlacementFixture, "an agent at its limit of compiles has a place that is not free") {
  join(1);
  lease(add(v1::Job::COMPILE_WINNER, 1), 1, "");
  const OpenJob& compile = add(v1::Job::COMPILE_WINNER, 3);
  CHECK(placement.targets(compile).free->agent == 1);
  lease(add(v1::Job::COMPILE_WINNER, 2), 1, "");
  CHECK(placement.targets(compile).any_exists);
  CHECK_FALSE(placement.targets(compile).free);
  join(2);
  CHECK(placement.targets(compile).free->agent == 2);
}

TEST_CASE_METHOD(PlacementFixture,
                 "a compile waits for an agent with the newest toolchain and goes to no older one") {
  join(1);
  agents[1].profile.toolchains = {{"nvrtc 12.9", 12, 9, {"sm_90"}}};
  OpenJob& compile = add(v1::Job::COMPILE_WINNER, 1);
  CHECK(placement.targets(compile).free->agent == 1);
  join(2);
  CHECK(placement.targets(compile).free->agent == 2);
  compile.needs.driver_cuda = 12080;
  CHECK(placement.targets(compile).free->agent == 1);
}

TEST_CASE_METHOD(PlacementFixture, "a check is compiled by the first agent that knows the architecture") {
  join(1);
  join(2);
  agents[1].profile.toolchains[0].architectures = {"sm_80"};
  CHECK(placement.compiler_for({{}, "sm_90", 0}) == 2);
  CHECK_FALSE(placement.compiler_for({{}, "sm_100", 0}));
}

TEST_CASE_METHOD(PlacementFixture, "a job goes to no agent that has the other language's toolchain alone") {
  join(1);
  join(2);
  agents[2].profile.toolchains = {{"triton 3.6.0", 0, 0, {"sm_90"}, {}, {}, {"12.9"}}};
  const ToolchainNeed triton{TritonTarget{"3.6.0", "12.9", "sm_90"}};
  OpenJob& compile = add(v1::Job::COMPILE_WINNER, 1);
  CHECK(placement.targets(compile).free->agent == 1);
  CHECK(free_target() == "GPU-1");
  compile.needs = job.needs = triton;
  CHECK(placement.targets(compile).free->agent == 2);
  CHECK(free_target() == "GPU-2");
  agents.erase(2);
  CHECK_FALSE(placement.targets(compile).any_exists);
  CHECK_FALSE(placement.targets(job).any_exists);
}

TEST_CASE_METHOD(PlacementFixture, "more room is on no GPU whose agent does not compile the job's language") {
  join(1);
  lease(job, 1, "GPU-1");
  join(2, 5000);
  agents[2].profile.toolchains = {{"triton 3.6.0", 0, 0, {"sm_90"}, {}, {}, {"12.9"}}};
  CHECK_FALSE(placement.more_room_exists(job, 5000));
  job.needs = {TritonTarget{"3.6.0", "12.9", "sm_90"}};
  CHECK(placement.more_room_exists(job, 5000));
}

TEST_CASE_METHOD(PlacementFixture,
                 "an agent without any toolchain measures CUDA kernels and no Triton kernel") {
  join(1);
  agents[1].profile.toolchains.clear();
  CHECK(free_target() == "GPU-1");
  job.needs = {TritonTarget{"3.6.0", "12.9", "sm_90"}};
  CHECK_FALSE(placement.targets(job).any_exists);
}

}  // namespace
}  // namespace cubind::test
