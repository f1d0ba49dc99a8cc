// The pages of records, each with a question as its title.
#pragma once

#include <optional>
#include <string>

#include "client/web/snapshot.hpp"
#include "client/web/view.hpp"

namespace cubind::web {

View records_page(const Snapshot& snapshot);
/// Asks the daemon for the records that others have replaced.
View stability_page(const Snapshot& snapshot, const std::string& kernel);
/// As `cubindctl audit` does: asks the daemon about each record.
View audit_page(const Snapshot& snapshot, const std::string& kernel);
/// The record in force of what the job tuned; empty: none.
std::string record_text(const Snapshot& snapshot, const v1::Job& job);
/// In place of a page that would take too long, or too many bytes, for the kernel's records; absent: they are
/// few enough.
std::optional<View> too_large(const Snapshot& snapshot, const std::string& kernel, std::size_t most_records,
                              const std::string& command);

}  // namespace cubind::web
