#include "server/convert/agent_messages.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/refuse.hpp"
#include "base/text.hpp"
#include "plan/answer_wire.hpp"
#include "plan/facts/fact_check.hpp"
#include "plan/wire_fields.hpp"
#include "server/convert/limits.hpp"
#include "server/store/row_facts.hpp"
#include "tuner/spec/wire.hpp"

namespace cubind {
namespace {

constexpr std::size_t kWorkPageBytes = std::size_t{1} << 20;
constexpr std::size_t kMaxLogBytes = std::size_t{256} << 10;
constexpr std::chrono::hours kMostClockError{24};
constexpr int kMaxStages = 64;  // of a result
constexpr std::uint32_t kMaxBlocks =
    1U << 16;  // of a trial in a stage; an agent that adds more adds them forever

/// What a compiler or a driver wrote. It is shown on the terminals of others, and not by cubindctl alone.
std::string log_from_wire(const std::string& text) { return printable(cut_utf8(text, kMaxLogBytes)); }

TrialRow checked_trial(const v1::TrialHeader& wire, const std::string& field) {
  TrialRow trial = trial_from_wire(wire, field);
  trial.header().set_detail(log_from_wire(wire.detail()));
  return trial;
}

ArtifactUpload checked_upload(const v1::ArtifactUpload& wire, const std::string& field) {
  ArtifactUpload upload{artifact_from_wire(wire, field), wire.info().zstd_cubin()};
  const ArtifactRow& row = upload.row;
  if (row.entries.size() != row.entry_symbols.size()) {
    throw Error(ErrorCode::InvalidArgument, field + ".entry_symbols", "has another length than entries");
  }
  if (row.cubin_bytes > kMaxCubinBytes) {
    throw Error(ErrorCode::ResourceExhausted, field + ".info.cubin_bytes",
                std::to_string(row.cubin_bytes) + " is above the limit of " + std::to_string(kMaxCubinBytes));
  }
  return upload;
}

/// Tables that meet keep the newest record: none may be newer than all that come.
void check_moment(const std::string& text, std::chrono::system_clock::time_point now,
                  const std::string& field) {
  if (!is_iso8601_utc(text)) {
    refuse(field, quoted(text) + " is no time in UTC such as 2026-11-21T12:00:00Z");
  }
  // As texts: the clock of this process ends in 2262.
  if (text > iso8601_utc(now + kMostClockError)) {
    refuse(field, quoted(text) + " is to come: set the clock of the agent's host");
  }
}

BlockRow checked_block(const v1::SampleBlock& wire, const std::string& field) {
  if (wire.samples_us().empty()) {
    refuse(field + ".samples_us", "is empty");
  }
  if (wire.index() >= kMaxBlocks) {
    refuse(field + ".index", std::to_string(wire.index()) + " is above " + std::to_string(kMaxBlocks - 1));
  }
  digest_from_wire(wire.trial_key(), field + ".trial_key");
  BlockRow row;
  *row.mutable_block() = wire;
  return row;
}

VerificationRow checked_verification(const v1::VerificationResult& wire, const std::string& field) {
  digest_from_wire(wire.verification_digest(), field + ".verification_digest");
  problem_from_wire(wire.problem(), field + ".problem");
  outcome_from_wire(wire.outcome(), field + ".outcome");
  digest_from_wire(wire.trial_key(), field + ".trial_key");
  VerificationRow row;
  *row.mutable_verification() = wire;
  row.mutable_verification()->set_detail(log_from_wire(wire.detail()));
  return row;
}

void check_outcomes(const v1::JobResult& wire) {
  std::set<Outcome> seen;
  for (int i = 0; i < wire.outcomes_size(); ++i) {
    const std::string field = element_member("result.outcomes", i, "outcome");
    if (!seen.insert(outcome_from_wire(wire.outcomes(i).outcome(), field)).second) {
      refuse(field, "is counted twice");
    }
  }
}

void check_stages(const google::protobuf::RepeatedPtrField<v1::StageTime>& stages, const std::string& field) {
  check_count(stages.size(), kMaxStages, field);
  for (int i = 0; i < stages.size(); ++i) {
    check_name(stages[i].stage(), element_member(field, i, "stage"));
  }
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

void check_progress(const v1::Progress& wire) {
  check_fact(wire, "progress");
  check_stages(wire.stages(), "progress.stages");
}

WorkBatch batch_from_wire(const v1::Batch& wire) {
  check_fact(wire, "batch");
  WorkBatch batch;
  const auto add = [](const auto& messages, std::string_view list, auto check, auto& rows) {
    for (int i = 0; i < messages.size(); ++i) {
      rows.push_back(check(messages[i], element(list, i)));
    }
  };
  add(wire.trials(), "batch.trials", checked_trial, batch.trials);
  add(wire.artifacts(), "batch.artifacts", checked_upload, batch.artifacts);
  add(wire.blocks(), "batch.blocks", checked_block, batch.blocks);
  add(wire.verifications(), "batch.verifications", checked_verification, batch.verifications);
  return batch;
}

WorkResult result_from_wire(const v1::JobResult& wire, std::chrono::system_clock::time_point now) {
  check_fact(wire, "result");
  WorkResult result;
  if (!v1::JobResult::Status_IsValid(wire.status())) {
    refuse("result.status", std::to_string(wire.status()) + " is not known");
  }
  check_outcomes(wire);
  check_stages(wire.stages(), "result.stages");
  result.told = wire;
  result.told.set_error(log_from_wire(wire.error()));
  if (wire.status() == v1::JobResult::SMALLER) {
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
    digest_from_wire(wire.search().space(), "result.search.space");
    record.search = wire.search();
  }
  const v1::VerificationSummary& verification = wire.provenance().verification();
  check_moment(wire.provenance().timing().measured_at(), now, "result.provenance.timing.measured_at");
  digest_from_wire(verification.digest(), "result.provenance.verification.digest");
  for (int i = 0; i < verification.problems_size(); ++i) {
    problem_from_wire(verification.problems(i),
                      element_field("result.provenance.verification", "problems", i));
  }
  record.provisional = wire.provenance().provisional();
  record.timing = wire.provenance().timing();
  record.verification = verification;
  for (int i = 0; i < wire.finalists_size(); ++i) {
    record.finalists.push_back(digest_from_wire(wire.finalists(i), element_field("result", "finalists", i)));
  }
  return result;
}

v1::CheckResult checked(v1::CheckResult result) {
  check_fact(result, "check");
  outcome_from_wire(result.outcome(), "check.outcome");
  if (!result.info().digest().empty()) {
    digest_from_wire(result.info().digest(), "check.info.digest");
  }
  result.set_log(log_from_wire(result.log()));
  for (v1::SpecFault& fault : *result.mutable_faults()) {
    fault.set_pointer(log_from_wire(fault.pointer()));
    fault.set_cause(log_from_wire(fault.cause()));
  }
  result.mutable_info()->clear_key();
  result.mutable_info()->clear_zstd_cubin();
  return result;
}

void to_wire(const Lease& lease, v1::LeaseGrant& to) {
  const RecordQuestion& question = lease.job.question;
  to.set_lease_id(lease.id);
  to.set_fence(lease.fence);
  to.set_job_id(lease.job.id);
  to.set_kind(lease.job.kind);
  to_wire(lease.spec, *to.mutable_spec());
  to_wire(question.problem, *to.mutable_problem());
  *to.mutable_facts() = lease.facts;
  to.set_device_class(bytes_of(question.device_class));
  to.set_gpu_uuid(lease.gpu_uuid);
  to_wire(question.policy, *to.mutable_policy());
  to_wire(question.numerics, *to.mutable_numerics());
  to.set_job_key(bytes_of(lease.job.fact.from_scratch() ? Digest::of(lease.job.id) : job_key(question)));
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
  to.set_rounds(lease.job.fact.rounds());
  to.set_untrusted(lease.job.fact.untrusted());
  to.set_architecture(lease.job.fact.architecture());
  to.set_driver_cuda(lease.job.fact.driver_cuda());
  to.set_only_when_idle(lease.only_when_idle);
  to.set_background(lease.background);
  to.set_for_bucket(lease.job.fact.for_bucket());
  to.set_max_trials(lease.job.budget.max_trials);
  to.set_max_seconds(lease.job.budget.max_seconds);
  to.set_spent_seconds(lease.job.shown().elapsed_ms() / 1000);
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
}

}  // namespace cubind
