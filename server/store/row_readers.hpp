// Rows of a query as structs: the columns in the order in which sql.hpp selects them. Every key is checked
// against its digest.
#pragma once

#include <string_view>
#include <vector>

#include "server/store/database.hpp"
#include "server/store/rows.hpp"

namespace cubind::store {

/// Throws DataLoss, naming the row.
[[noreturn]] void damaged(std::string_view what, const Digest& key, std::string cause);

ToolchainIdentity read_toolchain(Query& row);
Key read_key(Query& row, std::string_view what);
std::vector<ArtifactRow> read_artifacts(Query& query);
ArtifactRow read_artifact(Query& row);
TrialRow read_trial(Query& row);
std::vector<TrialRow> read_trials(Query& query);
/// Kernel to namespace.
RecordQuestion read_question(Query& row);
RecordRow read_record(Query& row);
JobRow read_job(Query& row);

}  // namespace cubind::store
