#include "server/jobs/failures.hpp"

#include <catch2/catch.hpp>
#include <filesystem>

#include "base/file.hpp"
#include "server/kernel_library.hpp"
#include "tests/support/manual_clock.hpp"
#include "tests/support/paths.hpp"
#include "tests/unit/server/rows.hpp"
#include "tuner/spec/keys.hpp"

namespace cubind::test {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kNeeded = 5000;

struct FailuresFixture {
  TempDir folder;
  ManualClock clock;
  KernelLibrary kernels{{copied()}, clock};
  JoinedAgents agents;
  Failures failures{kernels, agents, clock, 10min};
  JobRow job;

  FailuresFixture() {
    job.question = question_of(4096);
    job.key = job_key(job.question);
    job.state = v1::Job::FAILED;
    job.shown().set_error("no configuration survived");
    job.fact.set_for_bucket(true);
  }
  std::filesystem::path copied() const {
    for (const char* name : {"vector_add", "common"}) {
      std::filesystem::copy(source_dir() / "variants" / name, folder.path() / name);
    }
    return folder.path();
  }
  void edit_spec() {
    const std::filesystem::path spec = folder.path() / "vector_add" / "vector_add.json";
    write_file_atomic(spec, read_file(spec) + "\n");
    kernels.reload();
  }
  void fail_for_memory() {
    job.fact.set_needs_bytes(kNeeded);
    failures.note(job);
  }
  void offer(std::uint64_t bytes) {
    agents[1].profile.devices = {{"GPU-1", h200_class(), {13000, "580.159.04"}, "idle", bytes}};
  }
  std::optional<std::string> found(bool for_bucket = true) { return failures.find(job.key, for_bucket); }
};

TEST_CASE_METHOD(FailuresFixture, "a failure holds for the pause") {
  failures.note(job);
  clock.advance(10min - 1s);
  CHECK(found() == "no configuration survived");
  clock.advance(1s);
  CHECK_FALSE(found());
}

TEST_CASE_METHOD(FailuresFixture,
                 "a failure is over when the kernel's spec has changed and so is what it needed") {
  fail_for_memory();
  CHECK(failures.memory_needed(job.key) == kNeeded);
  edit_spec();
  CHECK_FALSE(found());
  CHECK(failures.memory_needed(job.key) == 0);
}

TEST_CASE_METHOD(FailuresFixture, "a key whose latest job has not failed has no failure") {
  fail_for_memory();
  job.state = GENERATE(v1::Job::DONE, v1::Job::CANCELLED);
  failures.note(job);
  CHECK_FALSE(found());
  CHECK(failures.memory_needed(job.key) == 0);
}

TEST_CASE_METHOD(FailuresFixture,
                 "the lack of memory holds until a GPU of the class offers enough whatever the time") {
  fail_for_memory();
  offer(kNeeded - 1);
  clock.advance(24h);
  CHECK(found());
  offer(kNeeded);
  CHECK_FALSE(found());
}

TEST_CASE_METHOD(FailuresFixture, "enough memory of a GPU of another class ends no failure") {
  fail_for_memory();
  offer(kNeeded);
  agents[1].profile.devices[0].device.digest = Digest::of("another class");
  CHECK(found());
}

TEST_CASE_METHOD(FailuresFixture,
                 "that exactly the problem did not fit is no failure of its bucket but other errors are") {
  job.fact.set_for_bucket(false);
  failures.note(job);
  CHECK(found(true));
  fail_for_memory();
  CHECK(found(false));
  CHECK_FALSE(found(true));
}

}  // namespace
}  // namespace cubind::test
