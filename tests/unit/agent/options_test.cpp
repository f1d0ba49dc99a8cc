#include "tuner/agent/options.hpp"

#include <sched.h>

#include <catch2/catch.hpp>
#include <cstdlib>

#include "tests/support/paths.hpp"

namespace cubind::test {
namespace {

std::optional<AgentOptions> parsed(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), {"cubind-agent", "--address", "unix:///tmp/cubind.sock"});
  int exit_code = 0;
  return parse_agent_options(static_cast<int>(arguments.size()), arguments.data(), exit_code);
}

TEST_CASE("a GPU is tuned on while it is idle unless the agent has another option") {
  CHECK(parsed({})->tune_when == TuneWhen::Idle);
  CHECK(parsed({"--tune-when", "always"})->tune_when == TuneWhen::Always);
  CHECK(parsed({"--tune-when", "never"})->tune_when == TuneWhen::Never);
  CHECK_FALSE(parsed({"--tune-when", "sometimes"}));
}

TEST_CASE("an agent stays without work unless it has a time to end after") {
  using namespace std::chrono_literals;
  CHECK_FALSE(parsed({})->exit_when_idle);
  CHECK(parsed({"--exit-when-idle", "90s"})->exit_when_idle == 90s);
  CHECK(parsed({"--exit-when-idle", "10m"})->exit_when_idle == 10min);
  CHECK_FALSE(parsed({"--exit-when-idle", "0s"}));
  CHECK_FALSE(parsed({"--exit-when-idle", "soon"}));
}

TEST_CASE("a number out of its range is refused") {
  const std::vector<std::vector<const char*>> wrong{{"--memory-fraction", "nan"},
                                                    {"--memory-fraction", "0"},
                                                    {"--compile-jobs", "0"},
                                                    {"--compile-jobs", "1025"},
                                                    {"--exit-when-idle", "nan"},
                                                    {"--exit-when-idle", "1e300h"},
                                                    {"--compile-deadline-ms", "9000000000000000000"},
                                                    {"--run-deadline-ms", "0"},
                                                    {"--idle-poll-ms", "1.5"},
                                                    {"--memory-poll-ms", "-1"},
                                                    {"--parent-pid", "-1"}};
  for (const std::vector<const char*>& arguments : wrong) {
    CAPTURE(arguments);
    CHECK_FALSE(parsed(arguments));
  }
}

TEST_CASE("agents of one machine have ids of their own") {
  CHECK(parsed({})->agent_id != parsed({})->agent_id);
}

TEST_CASE("the GPUs are those that are named and otherwise those that the driver shows") {
  CHECK(parsed({})->gpus.empty());
  CHECK(parsed({"--gpus", "1,GPU-5a3c"})->gpus == std::vector<std::string>{"1", "GPU-5a3c"});
}

TEST_CASE("the Pythons that have Triton are named and their worker is found") {
  CHECK(parsed({})->triton_pythons.empty());
  const auto options = parsed({"--triton-python", "/a/python", "--triton-python", "/b/../c/python"});
  CHECK(options->triton_pythons == std::vector<std::string>{"/a/python", "/c/python"});
  CHECK(options->triton_worker == source_dir() / "python/cubind/triton/worker");
  ::setenv("CUBIND_TRITON_PYTHON", "/d/python:/e/python", 1);
  CHECK(parsed({})->triton_pythons == std::vector<std::string>{"/d/python", "/e/python"});
  ::unsetenv("CUBIND_TRITON_PYTHON");
}

TEST_CASE("a share of memory is between none and all") {
  CHECK(parsed({"--memory-fraction", "0.5"})->memory_fraction == 0.5);
  CHECK_FALSE(parsed({"--memory-fraction", "1.5"}));
}

TEST_CASE("all cores that are granted compile") {
  const auto [cores, jobs] =
      GENERATE(table<double, unsigned>({{0.5, 1}, {1, 1}, {2, 2}, {3.9, 3}, {7.5, 7}, {16, 16}, {128, 128}}));
  CHECK(compile_jobs_for(cores) == jobs);
}

TEST_CASE("all compile workers are there before a job comes but at most sixteen for each GPU") {
  const auto [jobs, gpus, ready] = GENERATE(table<unsigned, std::size_t, unsigned>(
      {{1, 1, 1}, {2, 4, 2}, {16, 1, 16}, {32, 2, 32}, {128, 1, 16}, {128, 2, 32}}));
  CHECK(ready_compilers(jobs, gpus) == ready);
}

TEST_CASE("cores are granted by affinity and by a quota of the cgroup") {
  CHECK(cores_of_quota("400000 100000") == 4);
  CHECK(cores_of_quota("150000 100000") == 1.5);
  CHECK(cores_of_quota("50000 100000") == 1);
  CHECK(cores_of_quota("max 100000") >= 1e6);
  CHECK(cores_of_quota("") >= 1e6);
  cpu_set_t all, one;
  REQUIRE(sched_getaffinity(0, sizeof(all), &all) == 0);
  CHECK(parsed({})->compile_jobs == default_compile_jobs());
  CPU_ZERO(&one);
  for (int core = 0; CPU_COUNT(&one) == 0; ++core) {
    if (CPU_ISSET(core, &all)) {
      CPU_SET(core, &one);
    }
  }
  REQUIRE(sched_setaffinity(0, sizeof(one), &one) == 0);
  CHECK(default_compile_jobs() == 1);
  sched_setaffinity(0, sizeof(all), &all);
}

}  // namespace
}  // namespace cubind::test
