#include "server/store/fact_rows.hpp"

#include <array>
#include <bit>
#include <utility>

#include "base/json.hpp"
#include "base/text.hpp"
#include "plan/problem_json.hpp"

namespace cubind::store {
namespace {

Value bytes(const Digest& digest) { return RawBytes{std::string(digest.view())}; }
Value text(std::string_view value) { return std::string(value); }
template <typename Number>
Value number(Number value) {
  return static_cast<std::int64_t>(value);
}
Value null_if_zero(const Digest& digest) { return digest.is_zero() ? Value{} : bytes(digest); }

Digest digest_of(const std::vector<Value>& columns, std::string_view fact) {
  std::string covered;
  for (const Value& column : columns) {
    add_to(covered, column);
  }
  return Digest::of(covered.append(fact));
}

template <typename Row>
StoredRow make(std::vector<Value> columns, const Row& row) {
  std::string fact = fact_of(row).SerializeAsString();
  const Digest digest = digest_of(columns, fact);
  return {std::move(columns), std::move(fact), digest};
}

std::string_view kind_name(JobKind kind) { return kind == v1::Job::TUNE ? "tune" : "compile_winner"; }

}  // namespace

StoredRow stored(const DeviceClass& row) { return make({bytes(row.digest)}, row); }

StoredRow stored(const ArtifactRow& row) {
  const ToolchainIdentity& made_by = row.toolchain;
  std::string toolchain;
  for (const Digest& digest : {made_by.nvrtc, made_by.builtins, made_by.headers}) {
    toolchain += digest.view();
  }
  return make({bytes(row.key.digest), bytes(row.cubin), text(row.kernel), RawBytes{toolchain}}, row);
}

StoredRow stored(const TrialRow& row) {
  return make(
      {bytes(row.key.digest), text(origin_name(row.origin)), text(row.kernel), null_if_zero(row.source),
       text(problem_text(row.problem)), bytes(row.device_class), text(to_string(row.policy)),
       text(driver_branch(row.driver.version)), text(to_string(row.outcome)),
       row.artifact_key ? bytes(*row.artifact_key) : Value{}, number(row.series)},
      row);
}

StoredRow stored(const BlockRow& row) {
  const SampleBlock& block = row.block();
  return make({RawBytes{block.trial_key()}, text(origin_name(row)), number(row.series()),
               number(block.stage()), number(block.index()), text(row.job())},
              row);
}

StoredRow stored(const VerificationRow& row) {
  const VerificationResult& result = row.verification();
  return make(
      {RawBytes{result.trial_key()}, text(origin_name(row)), number(row.series()),
       RawBytes{result.verification_digest()},
       text(problem_text(problem_from_wire(result.problem(), "problem"))), number(result.after_timing()),
       text(to_string(outcome_from_wire(result.outcome(), "outcome")))},
      row);
}

StoredRow stored(const RecordRow& row) {
  const RecordQuestion& question = row.question;
  return make({bytes(row.key), text(question.kernel), text(problem_text(question.problem)),
               bytes(question.device_class), text(to_string(question.policy)), number(row.from_generation),
               bytes(row.trial), bytes(row.cubin), number(toolchain_major(row.toolchain)),
               text(driver_branch(row.driver.version)), text(to_string(row.evidence)),
               number(row.provisional), text(row.job_id)},
              row);
}

StoredRow stored(const JobRow& row) {
  const RecordQuestion& question = row.question;
  return make({text(row.id), text(kind_name(row.kind)), bytes(row.key), text(question.kernel),
               text(problem_text(question.problem)), bytes(question.device_class),
               text(to_string(question.policy)), text(state_name(row.state)), number(has_ended(row.state)),
               number(row.fact.fence()), number(row.fact.series()), text(row.shown().created_at()),
               text(row.shown().finished_at()), number(row.fact.needs_bytes())},
              row);
}

StoredRow stored(const WantRow& row) { return make({bytes(record_key(row.question).digest)}, row); }

std::string checked_fact(Statement& row, const FactTable& table) {
  const std::vector<Value> columns = row.values(table.columns.size());
  std::string fact = row.blob();
  if (row.blob() != digest_of(columns, fact).view()) {
    throw Error(ErrorCode::DataLoss, "fact_sha256", "is not that of the row: one of its bits has changed");
  }
  return fact;
}

void parse_fact(const std::string& bytes, google::protobuf::MessageLite& fact) {
  if (!fact.ParseFromString(bytes)) {
    throw Error(ErrorCode::DataLoss, "fact", "does not hold a " + fact.GetTypeName());
  }
}

RecordRow read_record(Statement& row) {
  const std::int64_t id = row.integer();
  const auto to_generation = row.optional_unsigned();
  auto record = read_fact<RecordRow>(row);
  record.id = id;
  record.key = record_key(record.question).digest;
  record.to_generation = to_generation;
  return record;
}

TrialRow read_trial(Statement& row) {
  auto trial = read_fact<TrialRow>(row);
  if (row.has_value()) {
    ArtifactRow artifact = read_fact<ArtifactRow>(row);
    trial.cubin = artifact.cubin;
    trial.fact.set_architecture(std::move(artifact.architecture));
    trial.fact.mutable_resources()->Assign(artifact.resources.begin(), artifact.resources.end());
  }
  return trial;
}

WantRow read_want(Statement& row) {
  auto want = read_fact<WantRow>(row);
  want.count = row.unsigned_integer();
  want.last_at = row.text();
  return want;
}

SharedJob read_shared_job(Statement& row) {
  SharedJob shared{.job = read_fact<JobRow>(row), .change = row.unsigned_integer(), .owner = {}};
  shared.owner = row.optional_blob().value_or("");
  return shared;
}

std::string problem_text(const Problem& problem) { return to_json(problem).dump(); }

std::string_view origin_name(Origin origin) { return origin == Origin::Worker ? "worker" : "import"; }

std::string_view state_name(JobState state) {
  constexpr std::array<std::string_view, 8> kNames{
      "", "queued", "running", "no_device", "waiting_for_idle_gpu", "done", "failed", "cancelled"};
  return kNames.at(static_cast<std::size_t>(state));
}

void add_to(std::string& bytes, const Value& value) {
  const auto add = [&](char kind, std::string_view held) {
    bytes.append(1, kind).append(std::to_string(held.size())).append(":").append(held);
  };
  if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    add('i', std::to_string(*integer));
  } else if (const auto* real = std::get_if<double>(&value)) {
    add('f', std::to_string(std::bit_cast<std::uint64_t>(*real)));
  } else if (const auto* held = std::get_if<std::string>(&value)) {
    add('s', *held);
  } else if (const auto* raw = std::get_if<RawBytes>(&value)) {
    add('b', raw->bytes);
  } else {
    add('n', "");
  }
}

void damaged(std::string_view what, const Digest& key, std::string cause) {
  throw Error(ErrorCode::DataLoss, "store " + std::string(what) + " " + key.hex().substr(0, 16),
              std::move(cause));
}

void require_full_key(const Key& key, const std::string& stored, std::string_view what) {
  if (key.full != stored) {
    damaged(what, key.digest,
            "the stored full key is another one (a collision or a damaged row): it is not served");
  }
}

Error damage_in(const FactTable& table, Statement& row, const Error& error) {
  const std::string column = error.where().empty() ? row.column() : error.where();
  return {
      ErrorCode::DataLoss,
      "store, table " + table.name + ", row " + valid_utf8(row.row_name(table.key)) + ", column " + column,
      error.cause()};
}

}  // namespace cubind::store
