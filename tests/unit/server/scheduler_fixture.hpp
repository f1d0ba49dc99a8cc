// A scheduler over a store in a temporary folder, the shipped kernels and agents that are only recorded.
#pragma once

#include "base/error.hpp"
#include "base/file.hpp"
#include "server/jobs/scheduler.hpp"
#include "server/kernel_library.hpp"
#include "tests/support/manual_clock.hpp"
#include "tests/support/paths.hpp"
#include "tests/unit/server/rows.hpp"

namespace cubind::test {

struct RecordingLink final : AgentLink {
  void announce(const Lease& next) override { announced.push_back(next); }
  std::vector<Lease> announced;
  std::vector<Lease> leases;
  std::vector<std::string> ended, told_awaited;
  std::vector<std::vector<LentGpu>> told_lends;
  bool drained = false;
  bool fails_once = false;
  std::optional<Error> refuses_once;
  void grant(const Lease& lease) override {
    if (std::exchange(fails_once, false)) {
      throw std::runtime_error("not an error of ours");
    }
    if (const auto refused = std::exchange(refuses_once, std::nullopt)) {
      throw Error(*refused);
    }
    leases.push_back(lease);
  }
  void awaited(const std::string& lease_id) override { told_awaited.push_back(lease_id); }
  void end_lease(const std::string& lease_id, const std::string&) override { ended.push_back(lease_id); }
  void check(const CheckOrder&) override {}
  void drain() override { drained = true; }
  void lends(const std::vector<LentGpu>& lent) override { told_lends.push_back(lent); }
};

inline AgentProfile agent_with(const std::string& consent = "idle") {
  AgentProfile profile;
  profile.id = "agent";
  profile.devices = {{"GPU-1", h200_class(), {13000, "580.159.04"}, consent, 0}};
  profile.toolchains = {{"nvrtc 13.0", 13, 0, {"sm_90"}}};
  return profile;
}

struct SchedulerFixture {
  TempDir folder;
  ManualClock clock;
  std::unique_ptr<Store> store = Store::open({folder.path() / "store.db"});
  Index index;
  KernelLibrary kernels{{source_dir() / "variants"}, clock};
  SchedulerOptions options;
  std::unique_ptr<Scheduler> scheduler = make();
  RecordingLink link;

  std::unique_ptr<Scheduler> make() {
    return std::make_unique<Scheduler>(*store, index, kernels, clock, options);
  }

  RecordQuestion question(std::int64_t n) {
    RecordQuestion question = question_of(n);
    question.interface = kernels.find("vector_add")->interface;
    return question;
  }
  JobEvent submit(std::int64_t n = 4096) { return scheduler->submit_tune(question(n), h200_class(), false); }
  JobState state() { return scheduler->open_jobs().at(0).job.state; }
  WorkBatch batch(const std::string& name) {
    WorkBatch batch;
    batch.trials = {trial_row(name)};
    batch.blocks = {block_row(batch.trials[0], 0)};
    return batch;
  }
  WorkResult done(const std::string& name) {
    WorkResult result;
    result.record = record_row(4096);
    result.record.trial = key_of("trial " + name).digest;
    return result;
  }
};

}  // namespace cubind::test
