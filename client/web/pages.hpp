// The pages, each with a question as its title.
#pragma once

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
/// As `cubindctl audit` does.
View audit_page(const std::string& address, const std::string& kernel);

}  // namespace cubind::web
