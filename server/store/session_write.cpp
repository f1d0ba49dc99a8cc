#include <algorithm>

#include "base/error.hpp"
#include "base/zstd.hpp"
#include "server/store/columns.hpp"
#include "server/store/row_readers.hpp"
#include "server/store/session.hpp"
#include "server/store/sql.hpp"

namespace cubind::store {
namespace {

bool is_fault(Outcome outcome) {
  return outcome == Outcome::Launch || outcome == Outcome::Runtime || outcome == Outcome::Timeout;
}

void require_digest(const TrialRow& trial) {
  if (trial.origin == Origin::Worker && Digest::of(trial.key.full) != trial.key.digest) {
    throw Error(ErrorCode::InvalidArgument, "trial key", "the full key does not have the digest");
  }
}

/// Whether an import would say again what the current row says.
bool says_the_same(const RecordRow& a, const RecordRow& b) {
  return a.configuration == b.configuration && a.trial == b.trial && a.cubin == b.cubin &&
         a.timing.median_us == b.timing.median_us && a.timing.measured_at == b.timing.measured_at &&
         a.verification == b.verification && a.driver == b.driver && a.toolchain == b.toolchain;
}

}  // namespace

std::uint64_t Session::next_generation() {
  if (!generation_raised_) {
    database_.query(sql::kRaiseGeneration).run();
  }
  generation_raised_ = true;
  return generation().number;
}

void Session::drop_damaged_blob(const Digest& cubin) {
  try {
    blob(cubin);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::DataLoss) {
      throw;
    }
    database_.query(sql::kDeleteBlob).bind(cubin).run();
  }
}

void Session::put_blob(const Blob& blob) {
  drop_damaged_blob(blob.cubin);
  if (has_blob(blob.cubin)) {
    return;
  }
  // A wrong digest here would hand out someone else's machine code for ever after.
  if (Digest::of(zstd_decompress(blob.zstd, blob.cubin_bytes)) != blob.cubin) {
    throw Error(ErrorCode::InvalidArgument, "artifact " + blob.cubin.hex().substr(0, 16),
                "the uploaded bytes do not have this digest");
  }
  database_.query(sql::kInsertBlob)
      .bind(blob.cubin, blob.cubin_bytes, Query::bytes(blob.zstd), Digest::of(blob.zstd))
      .run();
}

void Session::put_artifact(const ArtifactRow& artifact) {
  if (Digest::of(artifact.key.full) != artifact.key.digest) {
    throw Error(ErrorCode::InvalidArgument, "artifact key", "the full key does not have the digest");
  }
  if (this->artifact(artifact.key)) {
    return;
  }
  database_.query(sql::kDeleteArtifact).bind(artifact.key.digest).run();  // a damaged one
  const std::string entries = write_strings(artifact.entries);
  const std::string symbols = write_strings(artifact.entry_symbols);
  const std::string resources = write_resources(artifact.resources);
  const ToolchainIdentity& toolchain = artifact.toolchain;
  database_.query(sql::kInsertArtifact)
      .bind(artifact.key.digest, Query::bytes(artifact.key.full), artifact.cubin, artifact.kernel,
            artifact.architecture, artifact.cubin_bytes, entries, symbols, resources, toolchain.name,
            toolchain.nvrtc, toolchain.builtins, toolchain.headers, artifact.compile_ms, now_)
      .run();
}

void Session::put_device_class(const DeviceClass& device) {
  if (Digest::of(device.full) != device.digest) {
    throw Error(ErrorCode::InvalidArgument, "device class", "the full key does not have the digest");
  }
  const std::string facts = write_facts(device.facts);
  if (is_damaged_class(device.digest)) {
    database_.query(sql::kMendDeviceClass)
        .bind(Query::bytes(device.full), device.label, facts, device.digest)
        .run();
  }
  database_.query(sql::kInsertDeviceClass)
      .bind(device.digest, Query::bytes(device.full), device.label, facts, now_)
      .run();
}

bool Session::is_damaged_class(const Digest& digest) {
  Query query = database_.query(sql::kDeviceClass);
  return query.bind(digest).step() && !sound_row(query, "device_classes", damaged_, read_device_class);
}

std::optional<Session::TrialIdentity> Session::find_trial(const Digest& key, Origin origin) {
  Query query = database_.query(sql::kTrialId);
  if (!query.bind(key, origin_name(origin)).step()) {
    return std::nullopt;
  }
  TrialIdentity found;
  found.id = query.integer();
  found.full_key = query.blob();
  found.fault_count = query.word();
  return found;
}

std::int64_t Session::trial_id(const Digest& key, Origin origin) {
  const auto found = find_trial(key, origin);
  if (!found) {
    throw Error(ErrorCode::InvalidArgument, "trial " + key.hex().substr(0, 16),
                "its samples came before the trial itself was stored");
  }
  return found->id;
}

bool Session::put_trial(const TrialRow& trial) {
  // How much memory was free says nothing about the configuration.
  if (trial.outcome == Outcome::OutOfMemory) {
    return false;
  }
  const auto known = find_trial(trial.key.digest, trial.origin);
  if (!known) {
    insert_trial(trial);
    return true;
  }
  if (trial.origin == Origin::Import) {
    return false;
  }
  // A row whose own full key does not have the digest is damaged, and written anew.
  if (Digest::of(known->full_key) == trial.key.digest) {
    require_full_key(trial.key, known->full_key, "trial");
  }
  update_trial(trial, *known);
  return true;
}

void Session::update_trial(const TrialRow& trial, const TrialIdentity& known) {
  require_digest(trial);
  // Faults are counted over the life of the trial: its key holds the driver branch, so a new branch begins at
  // zero.
  const std::uint32_t faults =
      is_fault(trial.outcome) ? std::max(trial.fault_count, known.fault_count) : trial.fault_count;
  const std::string problem = write_problem(trial.problem);
  const std::string configuration = write_configuration(trial.configuration);
  const ToolchainIdentity& toolchain = trial.toolchain;
  database_.query(sql::kUpdateTrial)
      .bind(Query::bytes(trial.key.full), problem, configuration, trial.artifact_key,
            to_string(trial.outcome), trial.detail, faults, toolchain.name, toolchain.nvrtc,
            toolchain.builtins, toolchain.headers, trial.series, trial.job_id, known.id)
      .run();
}

void Session::insert_trial(const TrialRow& trial) {
  require_digest(trial);
  const std::string problem = write_problem(trial.problem);
  const std::string configuration = write_configuration(trial.configuration);
  const std::string policy = to_string(trial.policy);
  const std::string branch = driver_branch(trial.driver.version);
  const std::string resources = write_resources(trial.resources);
  const std::optional<Digest> cubin = trial.cubin.is_zero() ? std::nullopt : std::optional(trial.cubin);
  const ToolchainIdentity& toolchain = trial.toolchain;
  database_.query(sql::kInsertTrial)
      .bind(trial.key.digest, Query::bytes(trial.key.full), origin_name(trial.origin), trial.artifact_key,
            trial.kernel, problem, configuration, trial.device_class, policy, branch, trial.driver.cuda,
            trial.driver.version, to_string(trial.outcome), trial.detail, trial.fault_count, toolchain.name,
            toolchain.nvrtc, toolchain.builtins, toolchain.headers, cubin, trial.architecture, resources,
            trial.series, trial.job_id, now_)
      .run();
}

bool Session::put_block(const BlockRow& block) {
  if (insert_block(block)) {
    return true;
  }
  TrialRow trial;
  trial.key.digest = block.trial;
  trial.origin = block.origin;
  trial.series = block.series;
  const bool is_sound = std::ranges::any_of(blocks(trial), [&](const BlockRow& known) {
    return known.stage == block.stage && known.index == block.index;
  });
  if (is_sound) {
    return false;
  }
  database_.query(sql::kDeleteBlock)
      .bind(trial_id(block.trial, block.origin), block.series, static_cast<int>(block.stage), block.index)
      .run();
  return insert_block(block);
}

bool Session::insert_block(const BlockRow& block) {
  const std::string samples = write_doubles(block.block.samples_us);
  const BlockConditions& conditions = block.block.conditions;
  database_.query(sql::kInsertBlock)
      .bind(trial_id(block.trial, block.origin), block.series, static_cast<int>(block.stage), block.index,
            Query::bytes(samples), conditions.sm_mhz, conditions.memory_mhz, conditions.temperature_c,
            conditions.power_mw, conditions.throttle_reasons, conditions.throttled, conditions.contended,
            block.timer, block.tick_us, block.block.judged_against_us, block.job_id, now_)
      .run();
  return database_.changes() == 1;
}

void Session::put_verification(const VerificationRow& row) {
  const VerificationResult& result = row.result;
  const std::string problem = write_problem(result.problem);
  database_.query(sql::kPutVerification)
      .bind(trial_id(row.trial, row.origin), row.series, row.verification_digest, problem,
            result.after_timing, to_string(result.outcome), result.worst_excess, result.worst_output,
            result.worst_index, result.mismatches, result.same_bits, result.detail, result.reference,
            row.job_id, now_)
      .run();
}

void Session::end_record(std::int64_t id) {
  database_.query(sql::kEndRecord).bind(next_generation(), id).run();
}

bool Session::put_record(const RecordRow& record) {
  const Key key = record_key(record.question);
  drop_want(record.question);
  for (const Rival& rival : rivals(record, key.digest)) {
    // A measurement taken beside a foreign process never replaces one that had the GPU to itself.
    if (rival.record && record.provisional && !rival.record->provisional) {
      return false;
    }
    if (rival.record && record.evidence == Evidence::Imported && says_the_same(record, *rival.record)) {
      return false;
    }
    end_record(rival.id);
  }
  insert_record(record, key);
  return true;
}

void Session::insert_record(const RecordRow& record, const Key& key) {
  const RecordQuestion& question = record.question;
  const Timing& timing = record.timing;
  const VerificationSummary& summary = record.verification;
  const ToolchainIdentity& toolchain = record.toolchain;
  const std::string problem = write_problem(question.problem);
  const std::string policy = to_string(question.policy);
  const std::string numerics = to_string(question.numerics);
  const std::string configuration = write_configuration(record.configuration);
  const std::string branch = driver_branch(record.driver.version);
  const std::string verified_problems = write_problems(summary.problems);
  const std::string finalists = write_digests(record.finalists);
  database_.query(sql::kInsertRecord)
      .bind(key.digest, Query::bytes(key.full), question.kernel, question.interface, problem,
            question.device_class, policy, numerics, question.name_space, next_generation(), configuration,
            record.trial, record.cubin, record.architecture, toolchain.name, toolchain_major(toolchain),
            toolchain.nvrtc, toolchain.builtins, toolchain.headers, branch, record.driver.cuda,
            record.driver.version, to_string(record.evidence), record.provisional, timing.median_us,
            timing.low_us, timing.high_us, timing.samples, timing.sm_mhz, timing.power_limit_mw,
            timing.contended, timing.throttled, timing.gain_over_default, timing.timer, timing.tick_us,
            timing.measured_at, summary.verified, summary.digest, summary.reference, summary.worst_excess,
            verified_problems, summary.same_bits, summary.after_timing, Query::bytes(finalists),
            record.job_id, now_)
      .run();
}

void Session::put_job(const JobRow& job) {
  const RecordQuestion& question = job.question;
  const std::string problem = write_problem(question.problem);
  const std::string policy = to_string(question.policy);
  const std::string numerics = to_string(question.numerics);
  const std::string outcomes = write_outcomes(job.outcomes);
  const std::string compile = write_configurations(job.compile);
  database_.query(sql::kDeleteJob).bind(job.id).run();
  database_.query(sql::kSettleOutOfMemory).bind(job.key).run();
  database_.query(sql::kInsertJob)
      .bind(job.id, kind_name(job.kind), job.key, question.kernel, question.interface, problem,
            question.device_class, policy, numerics, question.name_space, state_name(job.state),
            has_ended(job.state), job.fence, job.series, job.retune, job.interruptions, job.error, job.note,
            job.created_at, job.finished_at, job.elapsed_ms, job.configurations, job.configurations_done,
            job.nvrtc_calls, outcomes, job.record_trial, compile, job.architecture, job.driver_cuda,
            job.for_bucket, job.needs_bytes)
      .run();
}

void Session::fail_damaged_jobs() {
  std::vector<std::pair<std::string, std::string>> damaged;  // id and what is wrong
  Query query = database_.query(sql::kOpenJobs);
  while (query.step()) {
    try {
      read_row(query, "jobs", read_job);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::DataLoss) {
        throw;
      }
      damaged_.leave_out(error);
      damaged.emplace_back(query.row_name(), error.what());
    }
  }
  for (const auto& [id, error] : damaged) {
    database_.query(sql::kFailJob).bind(error, now_, id).run();
  }
}

void Session::count_want(const RecordQuestion& question, const std::string& now) {
  const Key key = record_key(question);
  database_.query(sql::kCountWant).bind(now, key.digest).run();
  if (database_.changes() > 0) {
    return;
  }
  const std::string problem = write_problem(question.problem);
  const std::string policy = to_string(question.policy);
  const std::string numerics = to_string(question.numerics);
  database_.query(sql::kInsertWant)
      .bind(key.digest, Query::bytes(key.full), question.kernel, question.interface, problem,
            question.device_class, policy, numerics, question.name_space, now, now)
      .run();
  // Whoever may only read may ask for anything: the list does not grow with it.
  database_.query(sql::kTrimWants).bind(key.digest, kMaxWants).run();
}

std::uint64_t Session::pin_generation(const std::string& job, std::uint64_t generation) {
  if (const auto pinned = pinned_generation(job)) {
    return *pinned;
  }
  database_.query(sql::kInsertPin).bind(job, generation, now_, now_).run();
  return generation;
}

void Session::drop_want(const RecordQuestion& question) {
  const Key key = record_key(question);
  database_.query(sql::kDropWant).bind(key.digest).run();
}

}  // namespace cubind::store
