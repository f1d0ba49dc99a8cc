// Rows of a query as structs: what leads each, first what names the row, then its own columns. Every key is
// checked against its digest. A value that is damaged throws DataLoss.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "server/store/connection.hpp"
#include "server/store/damaged_rows.hpp"
#include "server/store/rows.hpp"

namespace cubind::store {

/// Throws DataLoss, naming what it is about.
[[noreturn]] void damaged(std::string_view what, const Digest& key, std::string cause);

/// Throws DataLoss if the stored full key is not the asked one (a collision or a damaged row).
void require_full_key(const Key& key, const std::string& stored, std::string_view what);

ToolchainIdentity read_toolchain(Statement& row);
Key read_key(Statement& row, bool may_lack_full);
ArtifactRow read_artifact(Statement& row);
TrialRow read_trial(Statement& row);
DeviceClass read_device_class(Statement& row);
WantRow read_want(Statement& row);
RecordRow read_record(Statement& row);
JobRow read_job(Statement& row);
SharedJob read_shared_job(Statement& row);

/// The error of damage, with table, row and column.
Error damage_in(std::string_view table, Statement& row, const Error& error);

/// The row as `read` makes it. An error of damage names table, row and column.
template <typename Read>
auto read_row(Statement& row, std::string_view table, Read read) {
  try {
    return read(row);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::DataLoss) {
      throw;
    }
    throw damage_in(table, row, error);
  }
}

/// Absent: the query has no row.
template <typename Read>
auto read_one(Statement& query, std::string_view table, Read read) {
  return query.step() ? std::optional(read_row(query, table, read)) : std::nullopt;
}

/// The row; absent where it is damaged, which is noted.
template <typename Read>
auto sound_row(Statement& row, std::string_view table, DamagedRows& damaged, Read read)
    -> std::optional<decltype(read(row))> {
  try {
    return read_row(row, table, read);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::DataLoss) {
      throw;
    }
    damaged.leave_out(error);
    return std::nullopt;
  }
}

/// Every undamaged row of the query.
template <typename Read>
auto read_sound(Statement& query, std::string_view table, DamagedRows& damaged, Read read) {
  std::vector<decltype(read(query))> rows;
  while (query.step()) {
    if (auto row = sound_row(query, table, damaged, read)) {
      rows.push_back(std::move(*row));
    }
  }
  return rows;
}

}  // namespace cubind::store
