// Tables of facts: the columns that statements ask for, then the fact (row_facts.hpp) and a SHA-256 of both.
// A row is read from its fact; the digest covers its columns.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/store/connection.hpp"
#include "server/store/damaged_rows.hpp"
#include "server/store/row_facts.hpp"

namespace cubind::store {

/// Table, its columns that the digest covers, and how many of them are its key. What else the table has
/// stands in the statements.
struct FactTable {
  std::string name;
  std::vector<std::string> columns;
  std::size_t key = 1;
};

template <typename Row>
inline const FactTable kTable;
template <>
inline const FactTable kTable<DeviceClass>{"device_classes", {"digest"}};
template <>
inline const FactTable kTable<ArtifactRow>{"artifacts", {"key", "cubin", "kernel", "toolchain"}};
template <>
inline const FactTable kTable<TrialRow>{"trials",
                                        {"key", "origin", "kernel", "source", "problem", "device_class",
                                         "policy", "driver_branch", "outcome", "artifact_key", "series"},
                                        3};
template <>
inline const FactTable kTable<BlockRow>{
    "blocks", {"trial", "origin", "series", "stage", "position", "job"}, 5};
template <>
inline const FactTable kTable<VerificationRow>{
    "verifications",
    {"trial", "origin", "series", "verification_digest", "problem", "after_timing", "outcome"},
    6};
template <>
inline const FactTable kTable<RecordRow>{
    "records",
    {"key", "kernel", "problem", "device_class", "policy", "from_generation", "trial", "cubin",
     "toolchain_major", "driver_branch", "evidence", "provisional", "job"}};
template <>
inline const FactTable kTable<JobRow>{
    "jobs",
    {"id", "kind", "key", "kernel", "problem", "device_class", "policy", "state", "ended", "fence", "series",
     "created_at", "finished_at", "needs_bytes"}};
template <>
inline const FactTable kTable<WantRow>{"wants", {"key"}};

/// A row to be written.
struct StoredRow {
  std::vector<Value> columns;
  std::string fact;
  Digest sha256;
};
StoredRow stored(const DeviceClass& row);
StoredRow stored(const ArtifactRow& row);
StoredRow stored(const TrialRow& row);
StoredRow stored(const BlockRow& row);
StoredRow stored(const VerificationRow& row);
StoredRow stored(const RecordRow& row);
StoredRow stored(const JobRow& row);
StoredRow stored(const WantRow& row);

/// Binds a row to a statement of sql::insert(), then the columns besides.
template <typename... Others>
Statement& bind_row(Statement& query, const StoredRow& row, const Others&... others) {
  for (const Value& column : row.columns) {
    query.bind(column);
  }
  return query.bind(Statement::bytes(row.fact), row.sha256, others...);
}

/// The columns of a row, which the digest covers; the fact's bytes.
std::string checked_fact(Statement& row, const FactTable& table);
/// Throws DataLoss where the bytes are no such message.
void parse_fact(const std::string& bytes, google::protobuf::MessageLite& fact);

/// The row that stands at the statement's next columns, as sql::columns_of() selects them. Throws DataLoss
/// where it is damaged.
template <typename Row>
Row read_fact(Statement& row) {
  decltype(fact_of(std::declval<Row>())) fact;
  parse_fact(checked_fact(row, kTable<Row>), fact);
  try {
    if constexpr (std::same_as<Row, decltype(fact)>) {
      return fact;
    } else {
      return row_of(std::move(fact));
    }
  } catch (const Error& error) {
    throw Error(ErrorCode::DataLoss, "fact", error.what());
  }
}
RecordRow read_record(Statement& row);
TrialRow read_trial(Statement& row);
WantRow read_want(Statement& row);
SharedJob read_shared_job(Statement& row);

/// Values as rows hold them.
std::string problem_text(const Problem& problem);
std::string_view origin_name(Origin origin);
/// Of a block or a verification.
template <typename Fact>
std::string_view origin_name(const Fact& fact) {
  return origin_name(static_cast<Origin>(fact.imported()));
}
std::string_view state_name(JobState state);

/// Appends the value, so that no other row of values gives the same bytes.
void add_to(std::string& bytes, const Value& value);

/// Throws DataLoss, naming what it is about.
[[noreturn]] void damaged(std::string_view what, const Digest& key, std::string cause);

/// Throws DataLoss if the stored full key is not the asked one (a collision or a damaged row).
void require_full_key(const Key& key, const std::string& stored, std::string_view what);

/// The error of damage, with table and row.
Error damage_in(const FactTable& table, Statement& row, const Error& error);

/// The row as `read` makes it. An error of damage names table and row.
template <typename Row, typename Read>
auto read_row(Statement& row, Read read) {
  try {
    return read(row);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::DataLoss) {
      throw;
    }
    throw damage_in(kTable<Row>, row, error);
  }
}

/// The row; absent where it is damaged, which is noted.
template <typename Row, typename Read>
auto sound_row(Statement& row, DamagedRows& damaged, Read read) -> std::optional<decltype(read(row))> {
  try {
    return read_row<Row>(row, read);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::DataLoss) {
      throw;
    }
    damaged.leave_out(error);
    return std::nullopt;
  }
}

/// Every undamaged row of the query.
template <typename Row, typename Read>
auto read_sound(Statement& query, DamagedRows& damaged, Read read) {
  std::vector<decltype(read(query))> rows;
  while (query.step()) {
    if (auto row = sound_row<Row>(query, damaged, read)) {
      rows.push_back(std::move(*row));
    }
  }
  return rows;
}

}  // namespace cubind::store
