#include "server/convert/agent_messages.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/refuse.hpp"
#include "base/text.hpp"
#include "server/convert/limits.hpp"
#include "server/convert/replies.hpp"
#include "tuner/plan/answer_wire.hpp"
#include "tuner/plan/evidence_wire.hpp"
#include "tuner/plan/wire_fields.hpp"
#include "tuner/spec/wire.hpp"

namespace cubind {
namespace {

constexpr double kMaxFigure = std::numeric_limits<double>::max();  // of what has no unit: it is finite
constexpr std::size_t kWorkPageBytes = std::size_t{1} << 20;
constexpr std::size_t kMaxLogBytes = std::size_t{256} << 10;
constexpr std::chrono::hours kMostClockError{24};
constexpr double kMaxStageMs = 1e12;  // 30 years; sums of them are finite
constexpr int kMaxStages = 64;        // of a result
constexpr std::uint32_t kMaxBlocks =
    1U << 16;  // of a trial in a stage; an agent that adds more adds them forever

/// What a compiler or a driver wrote. It is shown on the terminals of others, and not by cubindctl alone.
std::string log_from_wire(const std::string& text) { return printable(cut_utf8(text, kMaxLogBytes)); }

ToolchainIdentity identity_from_wire(const v1::ToolchainIdentity& wire, const std::string& field) {
  check_text(wire.name(), field + ".name");
  return toolchain_from_wire(wire, field);
}

TrialRow trial_from_wire(const v1::TrialHeader& wire, const std::string& list, int index) {
  TrialRow trial;
  trial.key = {digest_from_wire(wire.trial_key(), element_member(list, index, "trial_key")),
               wire.trial_key_full()};
  if (!wire.artifact_key().empty()) {
    trial.artifact_key = digest_from_wire(wire.artifact_key(), element_member(list, index, "artifact_key"));
  }
  trial.configuration =
      configuration_from_wire(wire.configuration(), element_member(list, index, "configuration"));
  trial.problem = problem_from_wire(wire.problem(), element_member(list, index, "problem"));
  trial.outcome = outcome_from_wire(wire.outcome(), element_member(list, index, "outcome"));
  trial.detail = log_from_wire(wire.detail());
  trial.fault_count = wire.fault_count();
  if (!wire.measured_as().empty()) {
    trial.measured_as = digest_from_wire(wire.measured_as(), element_member(list, index, "measured_as"));
  }
  if (wire.has_toolchain()) {
    trial.toolchain = identity_from_wire(wire.toolchain(), element_member(list, index, "toolchain"));
  }
  return trial;
}

ArtifactUpload upload_from_wire(const v1::ArtifactUpload& wire, const std::string& list, int index) {
  ArtifactUpload upload;
  ArtifactRow& row = upload.row;
  row.key = {digest_from_wire(wire.key(), element_member(list, index, "key")), wire.key_full()};
  row.cubin = digest_from_wire(wire.info().digest(), element_member(list, index, "info.digest"));
  row.architecture = wire.info().architecture();
  row.cubin_bytes = wire.info().cubin_bytes();
  check_texts(wire.entries(), element_member(list, index, "entries"), kMaxMessageBytes);
  check_texts(wire.entry_symbols(), element_member(list, index, "entry_symbols"), kMaxMessageBytes);
  row.entries.assign(wire.entries().begin(), wire.entries().end());
  row.entry_symbols.assign(wire.entry_symbols().begin(), wire.entry_symbols().end());
  row.resources = resources_from_wire(wire.info().entries());
  row.toolchain = identity_from_wire(wire.toolchain(), element_member(list, index, "toolchain"));
  check_number(wire.compile_ms(), kMaxFigure, element_member(list, index, "compile_ms"));
  row.compile_ms = wire.compile_ms();
  if (row.entries.size() != row.entry_symbols.size()) {
    throw Error(ErrorCode::InvalidArgument, element_member(list, index, "entry_symbols"),
                "has another length than entries");
  }
  if (row.cubin_bytes > kMaxCubinBytes) {
    throw Error(ErrorCode::ResourceExhausted, element_member(list, index, "info.cubin_bytes"),
                std::to_string(row.cubin_bytes) + " is above the limit of " + std::to_string(kMaxCubinBytes));
  }
  upload.zstd = wire.info().zstd_cubin();
  return upload;
}

void check_times(const v1::SampleBlock& wire, const std::string& list, int index) {
  if (wire.samples_us().empty()) {
    refuse(element_member(list, index, "samples_us"), "is empty");
  }
  for (int i = 0; i < wire.samples_us_size(); ++i) {
    check_duration(wire.samples_us(i), element_member(list, index, element("samples_us", i)));
  }
  check_time(wire.tick_us(), element_member(list, index, "tick_us"));
  check_time(wire.judged_against_us(), element_member(list, index, "judged_against_us"));
}

void check_times(const v1::Provenance& wire) {
  const std::string field = "result.provenance.";
  check_duration(wire.median_us(), field + "median_us");
  check_duration(wire.median_low_us(), field + "median_low_us");
  check_duration(wire.median_high_us(), field + "median_high_us");
  check_time(wire.tick_us(), field + "tick_us");
  check_number(wire.gain_over_default(), kMaxFigure, field + "gain_over_default");
  check_number(wire.verification().worst_excess(), kMaxFigure, field + "verification.worst_excess");
}

BlockRow block_from_wire(const v1::SampleBlock& wire, const std::string& list, int index) {
  check_times(wire, list, index);
  check_text(wire.timer(), element_member(list, index, "timer"));
  if (wire.index() >= kMaxBlocks) {
    refuse(element_member(list, index, "index"),
           std::to_string(wire.index()) + " is above " + std::to_string(kMaxBlocks - 1));
  }
  BlockRow row;
  row.trial = digest_from_wire(wire.trial_key(), element_member(list, index, "trial_key"));
  row.stage = wire.stage() == v1::SampleBlock::FINAL ? Stage::Final : Stage::Screen;
  row.index = wire.index();
  row.block = cubind::block_from_wire(wire);
  row.timer = wire.timer();
  row.tick_us = wire.tick_us();
  return row;
}

VerificationRow verification_from_wire(const v1::VerificationResult& wire, const std::string& list,
                                       int index) {
  check_number(wire.worst_excess(), kMaxFigure, element_member(list, index, "worst_excess"));
  check_text(wire.worst_output(), element_member(list, index, "worst_output"));
  check_text(wire.reference(), element_member(list, index, "reference"));
  VerificationRow row;
  row.trial = digest_from_wire(wire.trial_key(), element_member(list, index, "trial_key"));
  row.verification_digest =
      digest_from_wire(wire.verification_digest(), element_member(list, index, "verification_digest"));
  row.result = cubind::verification_from_wire(wire, element(list, index));
  row.result.detail = log_from_wire(wire.detail());
  return row;
}

/// Tables that meet keep the newest record: none may be newer than all that come.
void check_moment(const std::string& text, std::chrono::system_clock::time_point now,
                  const std::string& field) {
  check_text(text, field);
  if (!is_iso8601_utc(text)) {
    refuse(field, quoted(text) + " is no time in UTC such as 2026-11-21T12:00:00Z");
  }
  // As texts: the clock of this process ends in 2262.
  if (text > iso8601_utc(now + kMostClockError)) {
    refuse(field, quoted(text) + " is to come: set the clock of the agent's host");
  }
}

std::vector<OutcomeCount> outcomes_from_wire(const v1::JobResult& wire) {
  std::vector<OutcomeCount> outcomes;
  for (int i = 0; i < wire.outcomes_size(); ++i) {
    const std::string field = element_member("result.outcomes", i, "outcome");
    const Outcome outcome = outcome_from_wire(wire.outcomes(i).outcome(), field);
    if (std::ranges::count(outcomes, outcome, &OutcomeCount::outcome) > 0) {
      refuse(field, "is counted twice");
    }
    outcomes.push_back({outcome, wire.outcomes(i).count()});
  }
  return outcomes;
}

std::vector<StageTime> stages_from_wire(const v1::JobResult& wire) {
  check_count(wire.stages_size(), kMaxStages, "result.stages");
  std::vector<StageTime> stages;
  for (int i = 0; i < wire.stages_size(); ++i) {
    check_name(wire.stages(i).stage(), element_member("result.stages", i, "stage"));
    check_number(wire.stages(i).ms(), kMaxStageMs, element_member("result.stages", i, "ms"));
    stages.push_back({wire.stages(i).stage(), wire.stages(i).ms()});
  }
  return stages;
}

WorkResult::Status status_from_wire(v1::JobResult::Status status) {
  switch (status) {
    case v1::JobResult::DONE:
      return WorkResult::Status::Done;
    case v1::JobResult::FAILED:
      return WorkResult::Status::Failed;
    case v1::JobResult::INTERRUPTED:
      return WorkResult::Status::Interrupted;
    case v1::JobResult::SMALLER:
      return WorkResult::Status::Smaller;
    default:
      throw Error(ErrorCode::InvalidArgument, "result.status", std::to_string(status) + " is not known");
  }
}

void to_wire(const TrialRow& from, v1::TrialHeader& to) {
  to.set_trial_key(bytes_of(from.key.digest));
  to.set_trial_key_full(from.key.full);
  if (from.artifact_key) {
    to.set_artifact_key(bytes_of(*from.artifact_key));
  }
  cubind::to_wire(from.configuration, *to.mutable_configuration());
  cubind::to_wire(from.problem, *to.mutable_problem());
  to.set_outcome(cubind::to_wire(from.outcome));
  to.set_detail(from.detail);
  to.set_fault_count(from.fault_count);
  if (from.measured_as) {
    to.set_measured_as(bytes_of(*from.measured_as));
  }
  cubind::to_wire(from.toolchain, *to.mutable_toolchain());
}

void to_wire(const BlockRow& from, v1::SampleBlock& to) {
  to.set_trial_key(bytes_of(from.trial));
  to.set_stage(from.stage == Stage::Final ? v1::SampleBlock::FINAL : v1::SampleBlock::SCREEN);
  to.set_index(from.index);
  cubind::to_wire(from.block, to);
  to.set_timer(from.timer);
  to.set_tick_us(from.tick_us);
}

void to_wire(const VerificationRow& from, v1::VerificationResult& to) {
  to.set_trial_key(bytes_of(from.trial));
  to.set_verification_digest(bytes_of(from.verification_digest));
  cubind::to_wire(from.result, to);
}

void to_wire(const ArtifactRow& from, v1::ArtifactUpload& to) {
  to.set_key(bytes_of(from.key.digest));
  to.set_key_full(from.key.full);
  cubind::to_wire(from, *to.mutable_info());
  to.mutable_entries()->Assign(from.entries.begin(), from.entries.end());
  to.mutable_entry_symbols()->Assign(from.entry_symbols.begin(), from.entry_symbols.end());
  to.set_compile_ms(from.compile_ms);
  cubind::to_wire(from.toolchain, *to.mutable_toolchain());
}

// Messages that stay near kWorkPageBytes: a row is small compared with that.
class Pages {
 public:
  explicit Pages(std::string lease_id) : lease_id_(std::move(lease_id)) {}

  template <typename Row, typename Wire>
  void add(const std::vector<Row>& rows,
           google::protobuf::RepeatedPtrField<Wire>* (v1::LeaseGrant::*list)()) {
    for (const Row& row : rows) {
      if (pages_.empty() || bytes_ >= kWorkPageBytes) {
        pages_.emplace_back().set_lease_id(lease_id_);
        pages_.back().set_more(true);
        bytes_ = 0;
      }
      Wire& to = *(pages_.back().*list)()->Add();
      to_wire(row, to);
      bytes_ += to.ByteSizeLong();
    }
  }

  std::vector<v1::LeaseGrant> take() && { return std::move(pages_); }

 private:
  const std::string lease_id_;
  std::vector<v1::LeaseGrant> pages_;
  std::size_t bytes_ = 0;  // of the last page
};

}  // namespace

WorkProgress progress_from_wire(const v1::Progress& wire) {
  WorkProgress progress;
  check_text(wire.stage(), "progress.stage");
  progress.stage = wire.stage();
  progress.configurations = wire.configurations();
  progress.configurations_done = std::min(wire.configurations_done(), wire.configurations());
  progress.nvrtc_calls = wire.nvrtc_calls();
  check_text(wire.waits_because(), "progress.waits_because", kMaxReasonBytes);
  progress.waits_because = wire.waits_because();
  progress.is_lent = wire.is_lent();
  check_time(wire.best_us(), "progress.best_us");
  progress.best_us = wire.best_us();
  progress.state =
      wire.state() == v1::Job::WAITING_FOR_IDLE_GPU ? JobState::WaitingForIdleGpu : JobState::Running;
  return progress;
}

WorkBatch batch_from_wire(const v1::Batch& wire) {
  WorkBatch batch;
  for (int i = 0; i < wire.trials_size(); ++i) {
    batch.trials.push_back(trial_from_wire(wire.trials(i), "batch.trials", i));
  }
  for (int i = 0; i < wire.artifacts_size(); ++i) {
    batch.artifacts.push_back(upload_from_wire(wire.artifacts(i), "batch.artifacts", i));
  }
  for (int i = 0; i < wire.blocks_size(); ++i) {
    batch.blocks.push_back(block_from_wire(wire.blocks(i), "batch.blocks", i));
  }
  for (int i = 0; i < wire.verifications_size(); ++i) {
    batch.verifications.push_back(verification_from_wire(wire.verifications(i), "batch.verifications", i));
  }
  return batch;
}

WorkResult result_from_wire(const v1::JobResult& wire, std::chrono::system_clock::time_point now) {
  WorkResult result;
  result.status = status_from_wire(wire.status());
  result.error = log_from_wire(wire.error());
  result.outcomes = outcomes_from_wire(wire);
  result.needs_bytes = wire.needs_bytes();
  result.stages = stages_from_wire(wire);
  if (result.status == WorkResult::Status::Smaller) {
    result.smaller_problem = problem_from_wire(wire.smaller_problem(), "result.smaller_problem");
  }
  if (wire.winner_trial().empty()) {
    return result;
  }
  RecordRow& record = result.record;
  record.trial = digest_from_wire(wire.winner_trial(), "result.winner_trial");
  record.configuration = configuration_from_wire(wire.winner(), "result.winner");
  if (wire.has_measured_problem()) {
    record.question.problem = problem_from_wire(wire.measured_problem(), "result.measured_problem");
  }
  if (wire.has_search()) {
    const v1::SearchSummary& search = wire.search();
    check_number(search.seconds(), kMaxFigure, "result.search.seconds");
    check_text(search.strategy(), "result.search.strategy");
    record.search = {digest_from_wire(search.space(), "result.search.space"), search.strategy(),
                     search.trials(), search.seconds(), search.complete()};
  }
  const v1::Provenance& provenance = wire.provenance();
  check_times(provenance);
  record.provisional = provenance.provisional();
  check_text(provenance.timer(), "result.provenance.timer");
  check_moment(provenance.measured_at(), now, "result.provenance.measured_at");
  record.timing = timing_from_wire(provenance);
  record.verification = verification_from_wire(provenance.verification(), "result.provenance.verification");
  record.verification.digest = digest_from_wire(wire.verification_digest(), "result.verification_digest");
  for (int i = 0; i < wire.finalists_size(); ++i) {
    record.finalists.push_back(digest_from_wire(wire.finalists(i), element_field("result", "finalists", i)));
  }
  return result;
}

CheckOutcome check_from_wire(const v1::CheckResult& wire) {
  CheckOutcome outcome;
  outcome.outcome = outcome_from_wire(wire.outcome(), "check.outcome");
  outcome.log = log_from_wire(wire.log());
  for (const v1::SpecFault& fault : wire.faults()) {
    outcome.faults.push_back(
        {log_from_wire(fault.pointer()), log_from_wire(fault.cause()), fault.is_limit()});
  }
  check_text(wire.info().architecture(), "check.info.architecture");
  check_text(wire.info().toolchain(), "check.info.toolchain");
  outcome.artifact.architecture = wire.info().architecture();
  outcome.artifact.cubin_bytes = wire.info().cubin_bytes();
  outcome.artifact.toolchain.name = wire.info().toolchain();
  for (int i = 0; i < wire.info().entries_size(); ++i) {
    check_text(wire.info().entries(i).entry_symbol(), element_member("check.info.entries", i, "entry_symbol"),
               kMaxMessageBytes);
  }
  outcome.artifact.resources = resources_from_wire(wire.info().entries());
  if (!wire.info().digest().empty()) {
    outcome.artifact.cubin = digest_from_wire(wire.info().digest(), "check.info.digest");
  }
  return outcome;
}

void to_wire(const Lease& lease, v1::LeaseGrant& to) {
  const RecordQuestion& question = lease.job.question;
  to.set_lease_id(lease.id);
  to.set_fence(lease.fence);
  to.set_job_id(lease.job.id);
  to.set_kind(to_wire(lease.job.kind));
  to_wire(lease.spec, *to.mutable_spec());
  to_wire(question.problem, *to.mutable_problem());
  to_wire(lease.facts, *to.mutable_facts());
  to.set_device_class(bytes_of(question.device_class));
  to.set_gpu_uuid(lease.gpu_uuid);
  to_wire(question.policy, *to.mutable_policy());
  to_wire(question.numerics, *to.mutable_numerics());
  to.set_job_key(bytes_of(lease.job.from_scratch ? Digest::of(lease.job.id) : job_key(question)));
  to.set_lease_ms(lease.lease_ms);
  if (lease.incumbent) {
    to.set_incumbent_trial(bytes_of(lease.incumbent->trial));
    to_wire(lease.incumbent->configuration, *to.mutable_incumbent());
  }
  for (const Configuration& configuration : lease.job.hints) {
    to_wire(configuration, *to.add_hints());
  }
  for (const Configuration& configuration : lease.job.listed) {
    to_wire(configuration, *to.add_listed());
  }
  to.set_rounds(lease.job.rounds);
  to.set_architecture(lease.job.architecture);
  to.set_driver_cuda(lease.job.driver_cuda);
  to.set_only_when_idle(lease.only_when_idle);
  to.set_background(lease.background);
  to.set_for_bucket(lease.job.for_bucket);
  to.set_max_trials(lease.job.budget.max_trials);
  to.set_max_seconds(lease.job.budget.max_seconds);
  to.set_spent_seconds(lease.job.elapsed_ms / 1000);
}

std::vector<v1::LeaseGrant> known_work(const Lease& lease) {
  Pages pages(lease.id);
  pages.add(lease.trials, &v1::LeaseGrant::mutable_trials);
  pages.add(lease.blocks, &v1::LeaseGrant::mutable_blocks);
  pages.add(lease.verifications, &v1::LeaseGrant::mutable_verifications);
  pages.add(lease.artifacts, &v1::LeaseGrant::mutable_artifacts);
  return std::move(pages).take();
}

void announcement_of(const Lease& next, v1::LeaseGrant& to) {
  to_wire(next, to);
  for (const ArtifactRow& artifact : next.artifacts) {
    to.add_artifacts()->set_key(bytes_of(artifact.key.digest));
  }
}

void to_wire(const CheckOrder& order, v1::CheckOrder& to) {
  to.set_id(order.id);
  to_wire(order.spec, *to.mutable_spec());
  to_wire(order.problem, *to.mutable_problem());
  to_wire(order.configuration, *to.mutable_configuration());
  to.set_architecture(order.needs.architecture);
  to_wire(order.constants, *to.mutable_device_constants());
  to.set_with_reference(order.with_reference);
}

}  // namespace cubind
