// The pages, each with a question as its title.
#pragma once

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

}  // namespace cubind::web
