#include "server/jobs/result_check.hpp"

#include <algorithm>
#include <limits>
#include <set>

#include "base/refuse.hpp"
#include "server/store/store.hpp"
#include "tuner/plan/wire_fields.hpp"

namespace cubind {
namespace {

std::string short_name(const Digest& digest) { return digest.hex().substr(0, 16); }

std::string architecture_for(const OpenJob& job) {
  return job.row.architecture.empty() ? architecture(job.lease->facts, job.lease->spec->arch_features)
                                      : job.row.architecture;
}

TrialContext context_of(const OpenJob& job) {
  return {job.lease->spec.get(), job.measured().problem, job.row.question.device_class,
          job.row.question.policy, driver_branch(job.lease->driver.version)};
}

Key artifact_key_for(const OpenJob& job, const Configuration& configuration,
                     const ToolchainIdentity& toolchain) {
  return artifact_key(
      artifact_source(*job.lease->spec, job.measured().problem, configuration, architecture_for(job)),
      toolchain);
}

LaunchPlan plan_of(const OpenJob& job, const Configuration& configuration, const std::string& field) {
  const KernelSpec& spec = *job.lease->spec;
  const Problem problem = job.measured().problem;
  if (spec.canonicalize(configuration, field) != configuration) {
    refuse(field, "does not have the tunables in declared order");
  }
  const PlanEvaluator evaluator(spec.plan_template(problem, configuration), problem, configuration,
                                device_constants(job.lease->facts));
  PlanResult result = evaluator.evaluate(problem, configuration);
  if (!result.plan || result.plan->launches.empty()) {
    refuse(field, to_string(configuration) + " is not in the space of " + to_string(problem) + ": " +
                      (result.violation.empty() ? "it launches nothing" : result.violation));
  }
  return *std::move(result.plan);
}

void check_trial(const OpenJob& job, const TrialRow& trial, int index) {
  const std::string list = "batch.trials";
  const Problem problem = job.measured().problem;
  if (trial.problem != problem) {
    refuse(element_member(list, index, "problem"),
           "is " + to_string(trial.problem) + ", the lease is for " + to_string(problem));
  }
  const LaunchPlan plan = plan_of(job, trial.configuration, element_member(list, index, "configuration"));
  const Key artifact = artifact_key_for(job, trial.configuration, trial.toolchain);
  if (trial.artifact_key != artifact.digest) {
    refuse(element_member(list, index, "artifact_key"), "is not that of the trial's configuration");
  }
  if (trial.key != trial_key(context_of(job), artifact, plan)) {
    refuse(element_member(list, index, "trial_key"), "is not that of the trial's configuration");
  }
}

bool is_wanted(const OpenJob& job, const WorkBatch& batch, const ArtifactRow& artifact) {
  const auto has_key = [&](const Configuration& configuration) {
    const Configuration canonical = job.lease->spec->canonicalize(configuration, "listed");
    return artifact_key_for(job, canonical, artifact.toolchain) == artifact.key;
  };
  if (job.row.kind == JobKind::CompileWinner) {
    return std::ranges::any_of(job.row.listed, has_key);
  }
  return std::ranges::any_of(batch.trials, [&](const TrialRow& trial) {
    return trial.artifact_key == artifact.key.digest && has_key(trial.configuration);
  });
}

/// Trials of the lease's question, each looked up once.
class OwnTrials {
 public:
  OwnTrials(const OpenJob& job, const WorkBatch& batch, StoreReader& reader) : job_(job), reader_(reader) {
    for (const TrialRow& trial : batch.trials) {
      own_.insert(trial.key.digest);
    }
  }

  bool contains(const Digest& key) {
    if (own_.contains(key)) {
      return true;
    }
    const auto trial = reader_.trial_by_digest(key);
    return trial && is_of_question(*trial) && own_.insert(key).second;
  }

 private:
  bool is_of_question(const TrialRow& trial) const {
    const RecordQuestion question = job_.measured();
    return trial.kernel == question.kernel && trial.problem == question.problem &&
           trial.device_class == question.device_class && trial.policy == question.policy &&
           driver_branch(trial.driver.version) == driver_branch(job_.lease->driver.version);
  }

  const OpenJob& job_;
  StoreReader& reader_;
  std::set<Digest> own_;
};

void require_own(OwnTrials& trials, const Digest& key, const std::string& field) {
  if (!trials.contains(key)) {
    refuse(field, short_name(key) + " is no trial of this job");
  }
}

void check_verified(const OpenJob& job, const RecordRow& record, const TrialRow& trial, StoreReader& reader) {
  const Digest wanted = verification_digest(*job.lease->spec);
  const Problem problem = job.measured().problem;
  const std::vector<VerificationRow> verifications = reader.verifications(trial);
  const bool passed = std::ranges::any_of(verifications, [&](const VerificationRow& row) {
    return row.verification_digest == wanted && row.result.problem == problem &&
           row.result.outcome == Outcome::Correct;
  });
  const bool failed = std::ranges::any_of(verifications, [&](const VerificationRow& row) {
    return row.verification_digest == wanted && row.result.outcome != Outcome::Correct;
  });
  if (trial.cubin == Digest()) {
    refuse("result.winner_trial", short_name(trial.key.digest) + " has no artifact");
  }
  if (trial.outcome != Outcome::Correct || !record.verification.verified || !passed || failed) {
    refuse("result.winner_trial", short_name(trial.key.digest) + " was not verified");
  }
  if (record.verification.digest != verification_digest(*job.lease->spec, job.row.question.numerics)) {
    refuse("result.verification_digest", "is not that of the kernel's reference and tolerance");
  }
}

void check_timing(const Timing& timing, const TrialRow& trial, StoreReader& reader) {
  double least = std::numeric_limits<double>::infinity(), most = 0;
  std::size_t samples = 0;
  for (const BlockRow& block : reader.blocks(trial)) {
    if (block.stage != Stage::Final) {
      continue;
    }
    samples += block.block.samples_us.size();
    for (const double sample : block.block.samples_us) {
      least = std::min(least, sample);
      most = std::max(most, sample);
    }
  }
  const double slack = most * 1e-9;  // means are rounded
  const bool ordered = least - slack <= timing.low_us && timing.low_us <= timing.median_us + slack &&
                       timing.median_us <= timing.high_us + slack && timing.high_us <= most + slack;
  if (samples == 0 || timing.samples == 0 || timing.samples > samples || !ordered) {
    refuse("result.provenance.median_us",
           "is not within the " + std::to_string(samples) + " samples that the winner has");
  }
}

}  // namespace

void check_batch(const OpenJob& job, const WorkBatch& batch) {
  for (std::size_t i = 0; i < batch.trials.size(); ++i) {
    check_trial(job, batch.trials[i], static_cast<int>(i));
  }
  for (std::size_t i = 0; i < batch.artifacts.size(); ++i) {
    const ArtifactRow& artifact = batch.artifacts[i].row;
    if (artifact.architecture != architecture_for(job) || !is_wanted(job, batch, artifact)) {
      refuse(element_member("batch.artifacts", static_cast<int>(i), "key"),
             short_name(artifact.key.digest) + " is of no configuration that this batch or job names");
    }
  }
}

void check_against_store(const OpenJob& job, const WorkBatch& batch, StoreReader& reader) {
  for (std::size_t i = 0; i < batch.artifacts.size(); ++i) {
    const ArtifactRow& artifact = batch.artifacts[i].row;
    const auto known = reader.artifact(artifact.key);
    if (known && known->cubin != artifact.cubin) {
      refuse(element_member("batch.artifacts", static_cast<int>(i), "info.digest"),
             "is " + short_name(artifact.cubin) + ", the stored cubin of this key is " +
                 short_name(known->cubin));
    }
  }
  OwnTrials trials(job, batch, reader);
  for (std::size_t i = 0; i < batch.blocks.size(); ++i) {
    require_own(trials, batch.blocks[i].trial,
                element_member("batch.blocks", static_cast<int>(i), "trial_key"));
  }
  for (std::size_t i = 0; i < batch.verifications.size(); ++i) {
    const std::string list = "batch.verifications";
    require_own(trials, batch.verifications[i].trial, element_member(list, static_cast<int>(i), "trial_key"));
  }
}

void check_result(const OpenJob& job, const WorkResult& result, StoreReader& reader) {
  const RecordRow& record = result.record;
  const auto trial = reader.trial_by_digest(record.trial);
  OwnTrials trials(job, {}, reader);
  require_own(trials, record.trial, "result.winner_trial");
  const Problem measured = job.measured().problem;
  if (!record.question.problem.dims.empty() && record.question.problem != measured) {
    refuse("result.measured_problem",
           "is " + to_string(record.question.problem) + ", the lease is for " + to_string(measured));
  }
  for (std::size_t i = 0; i < record.finalists.size(); ++i) {
    require_own(trials, record.finalists[i], element_field("result", "finalists", static_cast<int>(i)));
  }
  TrialRow of_series = *trial;
  of_series.series = job.row.series;
  check_verified(job, record, of_series, reader);
  check_timing(record.timing, of_series, reader);
}

}  // namespace cubind
