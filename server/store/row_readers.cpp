#include "server/store/row_readers.hpp"

#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "server/store/row_columns.hpp"

namespace cubind::store {

namespace {

/// `holds` was selected by sql::holds_sum().
void require_sum(bool holds) {
  if (!holds) {
    throw Error(ErrorCode::DataLoss, "sum",
                "is not that of the row's other columns: one of them has changed");
  }
}

}  // namespace

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

Error damage_in(std::string_view table, Statement& row, const Error& error) {
  const std::string column = error.where().empty() ? row.column() : error.where();
  return {ErrorCode::DataLoss,
          "store, table " + std::string(table) + ", row " + valid_utf8(row.row_name()) + ", column " + column,
          error.cause()};
}

ToolchainIdentity read_toolchain(Statement& row) {
  ToolchainIdentity toolchain;
  read_columns(row, toolchain);
  return toolchain;
}

/// A full key that hashes to its digest. `may_lack_full`: imported rows have none.
Key read_key(Statement& row, bool may_lack_full) {
  Key key;
  key.digest = row.digest();
  key.full = row.blob();
  const bool lacks_full = key.full.empty() && may_lack_full;
  if (!lacks_full && Digest::of(key.full) != key.digest) {
    throw Error(ErrorCode::DataLoss, "full_key", "does not have the digest that is the row's key");
  }
  return key;
}

ArtifactRow read_artifact(Statement& row) {
  ArtifactRow artifact;
  artifact.key = read_key(row, false);
  const bool holds_sum = row.flag();
  read_columns(row, artifact);
  require_sum(holds_sum);
  if (artifact.entries.empty() || artifact.entry_symbols.size() != artifact.entries.size()) {
    throw Error(ErrorCode::DataLoss, "entry_symbols",
                "are " + std::to_string(artifact.entry_symbols.size()) + " for " +
                    std::to_string(artifact.entries.size()) + " entries");
  }
  return artifact;
}

TrialRow read_trial(Statement& row) {
  TrialRow trial;
  trial.key = read_key(row, true);
  read_columns(row, trial);
  return trial;
}

DeviceClass read_device_class(Statement& row) {
  const Key key = read_key(row, false);
  DeviceClass device;
  device.digest = key.digest;
  device.full = key.full;
  const bool holds_sum = row.flag();
  read_columns(row, device);
  std::string derived;
  try {
    derived = derive_device_class(device.facts, "").full;
  } catch (const Error& error) {
    throw Error(ErrorCode::DataLoss, "facts", error.what());
  }
  if (derived != device.full) {
    throw Error(ErrorCode::DataLoss, "facts", "are those of another device class");
  }
  require_sum(holds_sum);
  return device;
}

namespace {

/// Digest and full key of a question, which the row has besides.
void require_key_of(const RecordQuestion& question, const Key& stored) {
  if (record_key(question) != stored) {
    throw Error(ErrorCode::DataLoss, "full_key", "is not that of the row's other columns");
  }
}

}  // namespace

RecordRow read_record(Statement& row) {
  RecordRow record;
  record.id = row.integer();
  const Key stored{row.digest(), row.blob()};
  record.key = stored.digest;
  record.from_generation = row.unsigned_integer();
  record.to_generation = row.optional_unsigned();
  record.over_library = read_comparisons(row.optional_text().value_or(""));
  const bool holds_sum = row.flag();
  read_columns(row, record);
  require_key_of(record.question, stored);
  require_sum(holds_sum);
  return record;
}

JobRow read_job(Statement& row) {
  JobRow job;
  read_columns(row, job);
  const bool holds_sum = row.flag();
  if (job.kind == JobKind::Tune && !has_ended(job.state) && job.key != tuning_key(job)) {
    throw Error(ErrorCode::DataLoss, "key", "is not that of the row's other columns");
  }
  require_sum(holds_sum);
  return job;
}

SharedJob read_shared_job(Statement& row) {
  SharedJob shared{.job = read_job(row), .change = row.unsigned_integer(), .owner = {}};
  shared.owner = row.optional_blob().value_or("");
  return shared;
}

WantRow read_want(Statement& row) {
  const Key stored{row.digest(), row.blob()};
  WantRow want;
  read_columns(row, want);
  require_key_of(want.question, stored);
  return want;
}

}  // namespace cubind::store
