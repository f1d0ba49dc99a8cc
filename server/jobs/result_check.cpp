#include "server/jobs/result_check.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>

#include "base/refuse.hpp"
#include "base/text.hpp"
#include "base/zstd.hpp"
#include "plan/wire.hpp"
#include "plan/wire_fields.hpp"
#include "server/store/store.hpp"
#include "tuner/spec/cubin_entries.hpp"
#include "tuner/spec/loaded_code.hpp"

namespace cubind {
namespace {

std::string short_name(const Digest& digest) { return digest.hex().substr(0, 16); }

std::string architecture_for(const OpenJob& job) {
  return job.row.fact.architecture().empty() ? architecture(job.lease->facts, job.lease->spec->arch_features)
                                             : job.row.fact.architecture();
}

TrialContext context_of(const OpenJob& job) {
  return {job.lease->spec.get(), job.measured().problem, job.row.question.device_class,
          job.row.question.policy, driver_branch(job.lease->driver.version)};
}

ArtifactSource source_for(const OpenJob& job, const Configuration& configuration) {
  return artifact_source(*job.lease->spec, job.measured().problem, configuration, architecture_for(job));
}

Key artifact_key_for(const OpenJob& job, const Configuration& configuration,
                     const ToolchainIdentity& toolchain) {
  return artifact_key(source_for(job, configuration), toolchain);
}

/// Rows with the same identity would be stored by the order in which they come.
template <typename Row, typename Identity>
void require_distinct(const std::vector<Row>& rows, const std::string& list, const std::string& member,
                      const Identity& identity) {
  std::set<decltype(identity(rows.front()))> seen;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!seen.insert(identity(rows[i])).second) {
      refuse(element_member(list, static_cast<int>(i), member), "is in the batch twice");
    }
  }
}

void require_distinct_rows(const WorkBatch& batch) {
  require_distinct(batch.trials, "batch.trials", "trial_key",
                   [](const TrialRow& row) { return row.key.digest; });
  require_distinct(batch.artifacts, "batch.artifacts", "key",
                   [](const ArtifactUpload& upload) { return upload.row.key.digest; });
  require_distinct(batch.blocks, "batch.blocks", "index", [](const BlockRow& row) {
    return std::tuple(row.block().trial_key(), row.block().stage(), row.block().index());
  });
  require_distinct(batch.verifications, "batch.verifications", "problem", [](const VerificationRow& row) {
    return std::tuple(row.verification().trial_key(), row.verification().problem().SerializeAsString(),
                      row.verification().after_timing());
  });
}

/// A lease that compiles may have gone to an agent that may not measure on GPUs of the job's class.
void require_no_measurements(const WorkBatch& batch) {
  const std::string why = "is not empty, but the lease is to compile";
  const auto require_none = [&](bool none, const char* list) { none ? void() : refuse(list, why); };
  require_none(batch.trials.empty(), "batch.trials");
  require_none(batch.blocks.empty(), "batch.blocks");
  require_none(batch.verifications.empty(), "batch.verifications");
}

void require_offered(const AgentProfile& agent, const ToolchainIdentity& toolchain,
                     const std::string& field) {
  const auto is_same = [](const Digest& offered, const Digest& used) {
    return offered == Digest() || offered == used;
  };
  const bool is_offered = std::ranges::any_of(agent.toolchains, [&](const OfferedToolchain& one) {
    return one.name == toolchain.name && is_same(one.nvrtc, toolchain.nvrtc) &&
           is_same(one.builtins, toolchain.builtins);
  });
  if (!is_offered) {
    refuse(field, quoted(toolchain.name) + " is no toolchain of the agent's hello");
  }
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

/// Of the configuration that has the artifact's key; absent: none that the batch or the job names has it.
std::optional<ArtifactSource> source_of(const OpenJob& job, const WorkBatch& batch,
                                        const ArtifactRow& artifact) {
  std::optional<ArtifactSource> found;
  const auto has_key = [&](const Configuration& configuration) {
    ArtifactSource source = source_for(job, job.lease->spec->canonicalize(configuration, "listed"));
    if (artifact_key(source, artifact.toolchain) == artifact.key) {
      found = std::move(source);
    }
    return found.has_value();
  };
  if (!measures(job.row)) {
    std::ranges::any_of(job.row.listed, has_key);
  } else {
    std::ranges::any_of(batch.trials, [&](const TrialRow& trial) {
      return trial.artifact_key == artifact.key.digest && has_key(trial.configuration);
    });
  }
  return found;
}

void check_artifact(const OpenJob& job, const AgentProfile& agent, const WorkBatch& batch, int index) {
  const ArtifactRow& artifact = batch.artifacts[static_cast<std::size_t>(index)].row;
  const auto field = [index](const char* member) { return element_member("batch.artifacts", index, member); };
  require_offered(agent, artifact.toolchain, field("toolchain"));
  const auto source = source_of(job, batch, artifact);
  if (artifact.architecture != architecture_for(job) || !source) {
    refuse(field("key"),
           short_name(artifact.key.digest) + " is of no configuration that this batch or job names");
  }
  if (artifact.entries != source->entries) {
    refuse(field("entries"), "are not those of the artifact's configuration: " + join(source->entries, ", "));
  }
  for (const EntryResources& one : artifact.resources) {
    if (std::ranges::count(artifact.entry_symbols, one.entry_symbol()) == 0) {
      refuse(field("info.entries"), quoted(one.entry_symbol()) + " is none of entry_symbols");
    }
  }
}

void check_verification(const OpenJob& job, const VerificationRow& row, int index) {
  const KernelSpec& spec = *job.lease->spec;
  const std::string list = "batch.verifications";
  if (row.verification().verification_digest() != verification_digest(spec).view()) {
    refuse(element_member(list, index, "verification_digest"),
           "is not that of the kernel's reference and tolerance");
  }
  const std::string field = element_member(list, index, "problem");
  const Problem problem = problem_from_wire(row.verification().problem(), field);
  if (spec.canonicalize(problem, field) != problem) {
    refuse(field, "is not in canonical form");
  }
}

/// Trials of the lease's question that its kernel has, each looked up once.
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
    const auto trial = reader_.trial(key, job_.row.question.kernel);
    return trial && is_of_question(*trial) && own_.insert(key).second;
  }

 private:
  bool is_of_question(const TrialRow& trial) const {
    const RecordQuestion question = job_.measured();
    return trial.problem == question.problem && trial.device_class == question.device_class &&
           trial.policy == question.policy &&
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

bool passed(const VerificationRow& row) { return row.verification().outcome() == v1::CORRECT; }

/// Of the job's series, against today's reference and tolerance.
std::vector<VerificationRow> verifications_of(const OpenJob& job, TrialRow trial, StoreReader& reader) {
  trial.series = job.row.fact.series();
  std::vector<VerificationRow> rows = reader.verifications(trial);
  const Digest todays = verification_digest(*job.lease->spec);
  std::erase_if(rows, [&](const VerificationRow& row) {
    return row.verification().verification_digest() != todays.view();
  });
  return rows;
}

/// What a stored trial of the job runs. Without its cubin, which may have made room for others, the code is
/// not known.
struct RunCode {
  NamelessLaunch launch;
  std::optional<Blob> cubin;
  std::optional<Digest> code;
};

RunCode run_code(const OpenJob& job, const TrialRow& trial, const std::string& field, StoreReader& reader) {
  RunCode run{without_names(plan_of(job, trial.configuration, field),
                            {trial.fact.resources().begin(), trial.fact.resources().end()}),
              reader.blob(trial.cubin),
              {}};
  const auto artifact = reader.artifact(artifact_key_for(job, trial.configuration, trial.toolchain));
  if (run.cubin && artifact) {
    run.code = loaded_code(zstd_decompress(run.cubin->zstd, run.cubin->cubin_bytes), artifact->entry_symbols);
  }
  return run;
}

void check_verified(const OpenJob& job, const RecordRow& record, const TrialRow& trial, StoreReader& reader) {
  const std::vector<VerificationRow> rows = verifications_of(job, trial, reader);
  const auto passed_at = [&](const v1::Problem& problem) {
    return std::ranges::any_of(rows, [&](const VerificationRow& row) {
      return passed(row) && row.verification().problem() == problem;
    });
  };
  v1::Problem measured;
  to_wire(job.measured().problem, measured);
  if (trial.cubin == Digest()) {
    refuse("result.winner_trial", short_name(trial.key.digest) + " has no artifact");
  }
  if (trial.measured_as) {
    refuse("result.winner_trial", short_name(trial.key.digest) + " was not measured itself");
  }
  if (passed_at(measured) && !std::ranges::all_of(rows, passed)) {
    throw UnstableWinner(ErrorCode::InvalidArgument, "result.winner_trial",
                         short_name(trial.key.digest) + ": results differ from run to run");
  }
  if (trial.outcome != Outcome::Correct || !record.verification.verified() || !passed_at(measured)) {
    refuse("result.winner_trial", short_name(trial.key.digest) + " was not verified");
  }
  if (record.verification.digest() !=
      verification_digest(*job.lease->spec, job.row.question.numerics).view()) {
    refuse("result.provenance.verification.digest", "is not that of the kernel's reference and tolerance");
  }
  const std::string summary = "result.provenance.verification";
  for (int i = 0; i < record.verification.problems_size(); ++i) {
    if (!passed_at(record.verification.problems(i))) {
      refuse(element_field(summary, "problems", i), "was not verified");
    }
  }
  const bool same_bits =
      std::ranges::all_of(rows, [](const VerificationRow& row) { return row.verification().same_bits(); });
  const bool wants_same_bits = job.row.question.numerics.kind != Numerics::Kind::Tolerance;
  if (!same_bits && (record.verification.same_bits() || wants_same_bits)) {
    refuse(summary + ".same_bits", "is not what the verifications of the trial say");
  }
}

/// Of the samples of a trial's finals.
struct TimeSpan {
  double least = std::numeric_limits<double>::infinity(), most = 0;
  std::size_t samples = 0;

  void add(const TrialRow& trial, const std::string& timer, StoreReader& reader) {
    for (const BlockRow& row : reader.blocks(trial)) {
      if (row.block().stage() != v1::SampleBlock::FINAL || row.block().timer() != timer) {
        continue;
      }
      samples += static_cast<std::size_t>(row.block().samples_us_size());
      for (const double sample : row.block().samples_us()) {
        least = std::min(least, sample);
        most = std::max(most, sample);
      }
    }
  }
};

constexpr double kRounding = 1e-9;  // of means

TimeSpan check_timing(const Timing& timing, const TrialRow& trial, StoreReader& reader) {
  TimeSpan own;
  own.add(trial, timing.timer(), reader);
  const double slack = own.most * kRounding;
  const bool ordered = own.least - slack <= timing.low_us() &&
                       timing.low_us() <= timing.median_us() + slack &&
                       timing.median_us() <= timing.high_us() + slack && timing.high_us() <= own.most + slack;
  if (own.samples == 0 || timing.samples() == 0 || timing.samples() > own.samples || !ordered) {
    refuse("result.provenance.timing.median_us", "is not within the " + std::to_string(own.samples) +
                                                     " samples that the winner has by the timer " +
                                                     quoted(timing.timer()));
  }
  return own;
}

/// The default is one of the finalists, or nothing is known of it.
void check_gain(const RecordRow& record, const TimeSpan& own, const TrialRow& winner, StoreReader& reader) {
  const double gain = record.timing.gain_over_default();
  if (gain == 0) {
    return;
  }
  TimeSpan all = own;
  for (const Digest& finalist : record.finalists) {
    TrialRow trial = winner;
    trial.key.digest = finalist;
    all.add(trial, record.timing.timer(), reader);
  }
  const double least = all.least / own.most, most = all.most / own.least;
  if (gain < least * (1 - kRounding) || gain > most * (1 + kRounding)) {
    refuse("result.provenance.timing.gain_over_default", "is not between " + std::to_string(least) + " and " +
                                                             std::to_string(most) +
                                                             ", which the samples of the finalists allow");
  }
}

}  // namespace

void check_batch(const OpenJob& job, const AgentProfile& agent, const WorkBatch& batch) {
  if (!measures(job.row)) {
    require_no_measurements(batch);
  }
  require_distinct_rows(batch);
  for (std::size_t i = 0; i < batch.trials.size(); ++i) {
    check_trial(job, batch.trials[i], static_cast<int>(i));
    require_offered(agent, batch.trials[i].toolchain,
                    element_member("batch.trials", static_cast<int>(i), "toolchain"));
  }
  for (std::size_t i = 0; i < batch.artifacts.size(); ++i) {
    check_artifact(job, agent, batch, static_cast<int>(i));
  }
  for (std::size_t i = 0; i < batch.verifications.size(); ++i) {
    check_verification(job, batch.verifications[i], static_cast<int>(i));
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
    require_own(trials, trial_of(batch.blocks[i]),
                element_member("batch.blocks", static_cast<int>(i), "trial_key"));
  }
  for (std::size_t i = 0; i < batch.verifications.size(); ++i) {
    const std::string list = "batch.verifications";
    require_own(trials, trial_of(batch.verifications[i]),
                element_member(list, static_cast<int>(i), "trial_key"));
  }
}

bool has_failed(const OpenJob& job, const TrialRow& trial, StoreReader& reader) {
  return !std::ranges::all_of(verifications_of(job, trial, reader), passed);
}

void check_measured_as(const OpenJob& job, const WorkBatch& batch, StoreReader& reader) {
  OwnTrials trials(job, batch, reader);
  for (std::size_t i = 0; i < batch.trials.size(); ++i) {
    if (!batch.trials[i].measured_as) {
      continue;
    }
    const std::string field = element_member("batch.trials", static_cast<int>(i), "measured_as");
    const Digest& key = *batch.trials[i].measured_as;
    require_own(trials, key, field);
    const auto trial = reader.trial(batch.trials[i].key.digest, job.row.question.kernel);
    const auto measured = reader.trial(key, job.row.question.kernel);
    if (!trial || !measured || measured->measured_as) {  // what ran out of memory is not stored
      refuse(field, short_name(key) + " was not measured itself, or the trial ran out of memory");
    }
    const RunCode own = run_code(job, *trial, field, reader), other = run_code(job, *measured, field, reader);
    const bool is_same_code = !own.cubin || !other.cubin || (own.code && own.code == other.code);
    if (own.launch != other.launch || !is_same_code) {
      refuse(field, short_name(key) + " runs other code, or by other launches");
    }
  }
}

void check_cubin(const ArtifactRow& artifact, int index, StoreReader& reader) {
  const auto field = [index](const char* member) { return element_member("batch.artifacts", index, member); };
  const Blob blob = reader.blob(artifact.cubin).value();
  if (artifact.cubin_bytes != blob.cubin_bytes) {
    refuse(field("info.cubin_bytes"), "is " + std::to_string(artifact.cubin_bytes) + ", the cubin has " +
                                          std::to_string(blob.cubin_bytes) + " bytes");
  }
  const std::string cubin = zstd_decompress(blob.zstd, blob.cubin_bytes);
  if (read_cubin_entries(cubin).empty()) {
    return;  // its format is not known: clients report what they cannot load
  }
  for (const std::string& symbol : artifact.entry_symbols) {
    if (symbol.empty() || cubin.find(symbol) == std::string::npos) {
      refuse(field("entry_symbols"), quoted(symbol) + " is not in the cubin");
    }
  }
}

void check_result(const OpenJob& job, const WorkResult& result, StoreReader& reader) {
  const RecordRow& record = result.record;
  const auto trial = reader.trial(record.trial, job.row.question.kernel);
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
  of_series.series = job.row.fact.series();
  check_verified(job, record, of_series, reader);
  const TimeSpan own = check_timing(record.timing, of_series, reader);
  check_gain(record, own, of_series, reader);
}

}  // namespace cubind
