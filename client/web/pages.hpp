// The pages, each with a question as its title.
#pragma once

#include <optional>
#include <string>

#include "client/web/snapshot.hpp"
#include "client/web/view.hpp"

namespace cubind::web {

/// The first page: what answers, what is not used and why, what runs now.
View overview(const Snapshot& snapshot);
View jobs_page(const Snapshot& snapshot);
/// Throws Error(NotFound) if the snapshot has no such job.
View job_page(const Snapshot& snapshot, const std::string& id);
View kernels_page(const Snapshot& snapshot);
View wanted_page(const Snapshot& snapshot);
View records_page(const Snapshot& snapshot);
/// What the page shows of a record, in lower case.
std::string text_of(const v1::ListedRecord& record);
/// Asks the daemon for the records that others have replaced.
View stability_page(const Snapshot& snapshot, const std::string& kernel);
/// As `cubindctl audit` does: asks the daemon about each record.
View audit_page(const Snapshot& snapshot, const std::string& kernel);
/// In place of a page that would take too long, or too many bytes, for the kernel's records; absent: they are
/// few enough.
std::optional<View> too_large(const Snapshot& snapshot, const std::string& kernel, std::size_t most_records,
                              const std::string& command);

}  // namespace cubind::web
