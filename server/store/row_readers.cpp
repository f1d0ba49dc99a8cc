#include "server/store/row_readers.hpp"

#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "server/store/columns.hpp"

namespace cubind::store {

void damaged(std::string_view what, const Digest& key, std::string cause) {
  throw Error(ErrorCode::DataLoss, "store " + std::string(what) + " " + key.hex().substr(0, 16),
              std::move(cause));
}

void throw_with_place(const Error& error, Query& row, std::string_view table) {
  if (error.code() != ErrorCode::DataLoss) {
    throw;
  }
  const std::string column = error.where().empty() ? row.column() : error.where();
  throw Error(
      ErrorCode::DataLoss,
      "store, table " + std::string(table) + ", row " + valid_utf8(row.row_name()) + ", column " + column,
      error.cause());
}

ToolchainIdentity read_toolchain(Query& row) {
  ToolchainIdentity toolchain;
  toolchain.name = row.text();
  toolchain.nvrtc = row.digest();
  toolchain.builtins = row.digest();
  toolchain.headers = row.digest();
  return toolchain;
}

/// A full key that hashes to its digest. `may_lack_full`: what was imported has none.
Key read_key(Query& row, bool may_lack_full) {
  Key key;
  key.digest = row.digest();
  key.full = row.blob();
  const bool lacks_full = key.full.empty() && may_lack_full;
  if (!lacks_full && Digest::of(key.full) != key.digest) {
    throw Error(ErrorCode::DataLoss, "full_key", "does not have the digest that is the row's key");
  }
  return key;
}

ArtifactRow read_artifact(Query& row) {
  ArtifactRow artifact;
  artifact.key = read_key(row, false);
  artifact.cubin = row.digest();
  artifact.kernel = row.text();
  artifact.architecture = row.text();
  artifact.cubin_bytes = row.unsigned_integer();
  artifact.entries = read_strings(row.text());
  artifact.entry_symbols = read_strings(row.text());
  artifact.resources = read_resources(row.text());
  if (artifact.entries.empty() || artifact.entry_symbols.size() != artifact.entries.size()) {
    throw Error(ErrorCode::DataLoss, "entry_symbols",
                "are " + std::to_string(artifact.entry_symbols.size()) + " for " +
                    std::to_string(artifact.entries.size()) + " entries");
  }
  artifact.toolchain = read_toolchain(row);
  artifact.compile_ms = row.real();
  return artifact;
}

TrialRow read_trial(Query& row) {
  TrialRow trial;
  trial.key = read_key(row, true);
  trial.origin = read_origin(row.text());
  trial.artifact_key = row.optional_digest();
  trial.kernel = row.text();
  trial.problem = read_problem(row.text());
  trial.configuration = read_configuration(row.text());
  trial.device_class = row.digest();
  trial.policy = read_policy(row.text());
  trial.driver.cuda = row.word();
  trial.driver.version = row.text();
  trial.outcome = read_outcome(row.text());
  trial.detail = row.text();
  trial.fault_count = row.word();
  trial.toolchain = read_toolchain(row);
  trial.cubin = row.optional_digest().value_or(Digest{});
  trial.architecture = row.text();
  trial.resources = read_resources(row.text());
  trial.series = row.word();
  trial.job_id = row.text();
  return trial;
}

/// Kernel to namespace, in the columns' order.
RecordQuestion read_question(Query& row) {
  RecordQuestion question;
  question.kernel = row.text();
  question.interface = row.digest();
  question.problem = read_problem(row.text());
  question.device_class = row.digest();
  question.policy = read_policy(row.text());
  question.numerics = read_numerics(row.text());
  question.name_space = row.text();
  return question;
}

DeviceClass read_device_class(Query& row) {
  const Key key = read_key(row, false);
  DeviceClass device;
  device.digest = key.digest;
  device.full = key.full;
  device.label = row.text();
  device.facts = read_facts(row.text());
  std::string derived;
  try {
    derived = derive_device_class(device.facts, "").full;
  } catch (const Error& error) {
    throw Error(ErrorCode::DataLoss, "facts", error.what());
  }
  if (derived != device.full) {
    throw Error(ErrorCode::DataLoss, "facts", "are those of another device class");
  }
  return device;
}

namespace {

/// Digest and full key of a question, which the row has besides.
void require_key_of(const RecordQuestion& question, const Key& stored) {
  if (record_key(question) != stored) {
    throw Error(ErrorCode::DataLoss, "full_key", "is not that of the row's other columns");
  }
}

void read_timing(Query& row, Timing& timing) {
  timing.median_us = row.real();
  timing.low_us = row.real();
  timing.high_us = row.real();
  timing.samples = row.word();
  timing.sm_mhz = row.word();
  timing.power_limit_mw = row.word();
  timing.contended = row.flag();
  timing.throttled = row.flag();
  timing.gain_over_default = row.real();
  timing.timer = row.text();
  timing.tick_us = row.real();
  timing.measured_at = row.text();
}

void read_summary(Query& row, VerificationSummary& summary) {
  summary.verified = row.flag();
  summary.digest = row.digest();
  summary.reference = row.text();
  summary.worst_excess = row.real();
  summary.problems = read_problems(row.text());
  summary.same_bits = row.flag();
  summary.after_timing = row.flag();
}

}  // namespace

RecordRow read_record(Query& row) {
  RecordRow record;
  record.id = row.integer();
  const Key stored{row.digest(), row.blob()};
  record.question = read_question(row);
  require_key_of(record.question, stored);
  record.key = stored.digest;
  record.from_generation = row.unsigned_integer();
  record.to_generation = row.optional_unsigned();
  record.configuration = read_configuration(row.text());
  record.trial = row.digest();
  record.cubin = row.digest();
  record.architecture = row.text();
  record.toolchain = read_toolchain(row);
  record.driver.cuda = row.word();
  record.driver.version = row.text();
  record.evidence = read_evidence(row.text());
  record.provisional = row.flag();
  read_timing(row, record.timing);
  read_summary(row, record.verification);
  record.finalists = read_digests(row.blob());
  record.job_id = row.text();
  return record;
}

JobRow read_job(Query& row) {
  JobRow job;
  job.id = row.text();
  job.kind = read_kind(row.text());
  job.key = row.digest();
  job.question = read_question(row);
  job.state = read_state(row.text());
  if (job.kind == JobKind::Tune && !has_ended(job.state) && job.key != job_key(job.question)) {
    throw Error(ErrorCode::DataLoss, "key", "is not that of the row's other columns");
  }
  job.fence = row.unsigned_integer();
  job.series = row.word();
  job.retune = row.flag();
  job.interruptions = row.word();
  job.error = row.text();
  job.note = row.text();
  job.created_at = row.text();
  job.finished_at = row.text();
  job.elapsed_ms = row.real();
  job.configurations = row.word();
  job.configurations_done = row.word();
  job.nvrtc_calls = row.word();
  job.outcomes = read_outcomes(row.text());
  job.record_trial = row.digest();
  job.compile = read_configurations(row.text());
  job.architecture = row.text();
  job.driver_cuda = row.word();
  job.for_bucket = row.flag();
  job.needs_bytes = row.unsigned_integer();
  return job;
}

WantRow read_want(Query& row) {
  const Key stored{row.digest(), row.blob()};
  WantRow want;
  want.question = read_question(row);
  require_key_of(want.question, stored);
  want.count = row.unsigned_integer();
  want.first_at = row.text();
  want.last_at = row.text();
  return want;
}

}  // namespace cubind::store
