// Rows of a query as structs: the columns in the order in which sql.hpp selects them. Every key is checked
// against its digest.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "server/store/database.hpp"
#include "server/store/rows.hpp"

namespace cubind::store {

/// Throws DataLoss, naming the row.
[[noreturn]] void damaged(std::string_view what, const Digest& key, std::string cause);

ToolchainIdentity read_toolchain(Query& row);
Key read_key(Query& row, std::string_view what);
ArtifactRow read_artifact(Query& row);
TrialRow read_trial(Query& row);
/// Kernel to namespace.
RecordQuestion read_question(Query& row);
RecordRow read_record(Query& row);
JobRow read_job(Query& row);

/// Every row of the query, as `read` makes it.
template <typename Read>
auto read_all(Query& query, Read read) {
  std::vector<decltype(read(query))> rows;
  while (query.step()) {
    rows.push_back(read(query));
  }
  return rows;
}

/// Absent: the query has no row.
template <typename Read>
auto read_one(Query& query, Read read) {
  return query.step() ? std::optional(read(query)) : std::nullopt;
}

}  // namespace cubind::store
