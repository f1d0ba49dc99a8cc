// A scheduler over a store of its own, the shipped kernels and agents that are only recorded.
#pragma once

#include "base/error.hpp"
#include "base/file.hpp"
#include "server/jobs/scheduler.hpp"
#include "tests/support/facts.hpp"
#include "tests/support/manual_clock.hpp"
#include "tests/unit/server/rows.hpp"
#include "tests/unit/server/vector_add_library.hpp"

namespace cubind::test {

struct RecordingLink : AgentLink {
  void announce(const Lease& next) override { announced.push_back(next); }
  std::vector<Lease> announced;
  std::vector<Lease> leases;
  std::vector<std::string> ended, why_ended, told_awaited;
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
  void end_lease(const std::string& lease_id, const std::string& reason) override {
    ended.push_back(lease_id);
    why_ended.push_back(reason);
  }
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
  /// `url`: of a database of PostgreSQL, in place of a file.
  explicit SchedulerFixture(const std::string& url = "")
      : store(Store::open({.path = folder.path() / "store.db", .url = url})) {}

  TempDir folder;
  ManualClock clock;
  std::unique_ptr<Store> store;
  Index index;
  VectorAddLibrary kernels{clock};
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
  JobEvent submit_tune(const RecordQuestion& question, const DeviceClass& device, bool retune) {
    return scheduler->submit_tunes({{question, device}}, retune).front();
  }
  JobEvent submit(std::int64_t n = 4096) { return submit_tune(question(n), h200_class(), false); }
  JobState state() { return scheduler->open_jobs().at(0).job.state; }
  const KernelSpec& spec() { return *kernels.find("vector_add")->spec; }
  /// A trial of n elements with the keys that an agent gives it: "a", or another name for another one.
  TrialRow trial(const std::string& name, std::int64_t n = 4096) {
    return trial_of({{{"THREADS", name == "a" ? 256 : 512}, {"VECTOR", 4}, {"UNROLL", 1}}}, name, n);
  }
  TrialRow trial_of(const Configuration& configuration, const std::string& name, std::int64_t n = 4096) {
    TrialRow row = trial_row(name);
    row.problem = problem_of(n);
    row.configuration = configuration;
    const PlanEvaluator evaluator(spec().plan_template(row.problem, row.configuration), row.problem,
                                  row.configuration, device_constants(h200()));
    const Key artifact =
        artifact_key(artifact_source(spec(), row.problem, row.configuration, "sm_90"), row.toolchain);
    row.artifact_key = artifact.digest;
    row.key = trial_key({&spec(), row.problem, row.device_class, row.policy, "580"}, artifact,
                        *evaluator.evaluate(row.problem, row.configuration).plan);
    return row;
  }
  WorkBatch batch(const std::string& name, std::int64_t n = 4096) {
    WorkBatch batch;
    batch.trials = {trial(name, n)};
    const TrialRow& row = batch.trials[0];
    ArtifactRow artifact = artifact_row(name, "cubin " + name);
    const ArtifactSource source = artifact_source(spec(), row.problem, row.configuration, "sm_90");
    artifact.key = artifact_key(source, row.toolchain);
    artifact.entries = source.entries;
    batch.artifacts = {{artifact, blob_of("cubin " + name).zstd}};
    batch.blocks = {block_row(row, 0)};
    VerificationRow verified;
    *verified.mutable_verification() = comparison_of(row.problem);
    verified.mutable_verification()->set_trial_key(bytes_of(row.key.digest));
    verified.mutable_verification()->set_verification_digest(bytes_of(verification_digest(spec())));
    batch.verifications = {verified};
    return batch;
  }
  WorkResult done(const std::string& name, std::int64_t n = 4096) {
    WorkResult result;
    result.record = record_row(n);
    result.record.trial = trial(name, n).key.digest;
    result.record.finalists = {result.record.trial};
    result.record.verification.set_digest(bytes_of(verification_digest(spec())));
    result.record.timing.set_low_us(20.0);
    result.record.timing.set_high_us(20.0);
    result.record.timing.set_samples(3);
    result.record.timing.set_timer("cupti");
    set_problems(std::vector{problem_of(n)}, result.record.verification);
    return result;
  }
  static WorkResult failed() {
    WorkResult result;
    result.told.set_status(v1::JobResult::FAILED);
    return result;
  }
};

}  // namespace cubind::test
