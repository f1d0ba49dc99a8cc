#include "server/service/miss_reason.hpp"

#include <catch2/catch.hpp>

#include "tests/unit/server/lookup_fixture.hpp"

namespace cubind::test {
namespace {

JobEvent job_in(JobState state, const std::string& error = "") {
  JobEvent event;
  event.job.state = state;
  event.job.shown().set_error(error);
  event.device = "nvidia-h200";
  return event;
}

AgentProfile agent_without(const std::string& reason) {
  AgentProfile agent;
  agent.no_device_because = reason;
  return agent;
}

TEST_CASE("a miss tells what the best candidate lacks") {
  LookupFixture f;
  Question question = f.ask(4096);
  const auto shortfall = [&] {
    const auto candidates = f.rank(question);
    return shortfall_of(question, candidates.empty() ? nullptr : &candidates.front());
  };
  CHECK(shortfall_of(question, nullptr) == "nothing of its bucket was measured on " + h200_class().label);
  CHECK(shortfall() == "nothing of its bucket was measured on " + h200_class().label);
  f.add({f.record(3000)});
  CHECK(shortfall() == "of its bucket " + to_string(f.record(3000).question.problem) + " was measured");
  f.add({f.record(3000), f.record(4096)});
  CHECK(shortfall().empty());
  question.toolchain = CurrentToolchain{"nvrtc 13.1", {}};
  CHECK(shortfall() == "stale: nvrtc 13.0, now nvrtc 13.1");
}

TEST_CASE("a job that is under way or done has no obstacle") {
  for (const JobState state : {v1::Job::QUEUED, v1::Job::RUNNING, v1::Job::DONE}) {
    CHECK(obstacle_of(job_in(state), {}).empty());
  }
}

TEST_CASE("a job without a device tells whether agents are there and what they offer") {
  const std::string begins = "; the job begins as soon as one does";
  const JobEvent job = job_in(v1::Job::NO_DEVICE);
  CHECK(obstacle_of(job, {}) == "no agent is connected (the daemon's log says why)" + begins);
  CHECK(obstacle_of(job, {agent_without("no driver"), agent_without("no driver"), agent_without("no GPU")}) ==
        "no agent offers a GPU: no GPU; no driver" + begins);
  AgentProfile agent = agent_without("");
  agent.devices = {{"GPU-1", h200_class(), {}, "idle", 0}};
  CHECK(obstacle_of(job, {agent}) ==
        "no agent offers nvidia-h200 for measurements (offered: " + h200_class().label + ")" + begins);
}

TEST_CASE("a job that no agent with its GPU can compile tells what is needed, what there is and what to do") {
  JobEvent job = job_in(v1::Job::NO_DEVICE);
  job.job.question.device_class = h200_class().digest;
  job.needs = {TritonTarget{"3.6.0", "12.9", "sm_90"}};
  AgentProfile agent = agent_without("");
  agent.devices = {{"GPU-1", h200_class(), {}, "idle", 0}};
  agent.toolchains = {{"nvrtc 13.0", 13, 0, {"sm_90"}}};
  CHECK(obstacle_of(job, {agent}) ==
        "no agent with such a GPU compiles it: none has Triton 3.6.0 with ptxas 12.9 for sm_90 (there is "
        "nvrtc 13.0). Install it where an agent runs (pip install triton==3.6.0), name that Python by "
        "--triton-python, and start the agent again; the job begins as soon as one does");
}

TEST_CASE("a job that ended without a winner tells its error") {
  CHECK(obstacle_of(job_in(v1::Job::FAILED, "nothing survived"), {}) == "the job failed: nothing survived");
  CHECK(obstacle_of(job_in(v1::Job::CANCELLED), {}) == "the job was cancelled");
}

TEST_CASE("a better configuration without a cubin tells its error or who compiles it") {
  Resolution none, wanted;
  wanted.compile.emplace();
  CHECK(obstacle_of(CompileAttempts{}, none).empty());
  CHECK(obstacle_of(CompileAttempts{"", "expected a ';'", true}, none) ==
        "a better configuration was not compiled: expected a ';'");
  CHECK(obstacle_of(CompileAttempts{"j1", "", false}, wanted) ==
        "a better configuration has no cubin yet: job j1 compiles it");
  CHECK(obstacle_of(CompileAttempts{}, wanted) ==
        "a better configuration has no cubin yet: no agent compiles it");
}

TEST_CASE("an answer of an earlier toolchain says so and who compiles the other") {
  Resolution resolution;
  resolution.outdated = true;
  resolution.compile.emplace();
  const std::string earlier = "the cubin is from an earlier toolchain, and one of the current toolchain ";
  CHECK(obstacle_of(CompileAttempts{"j1", "", false}, resolution) ==
        earlier + "is not compiled yet: job j1 compiles it");
  resolution.compile.reset();
  CHECK(obstacle_of(CompileAttempts{"j1", "out of memory", true}, resolution) ==
        earlier + "was not compiled: out of memory");
}

}  // namespace
}  // namespace cubind::test
