// The counters of launches as ncu prints them: `ncu --csv --page raw`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "client/cubindctl/profile/variant_profile.hpp"

namespace cubind::ctl {

/// The metrics that ncu is asked for by name; those of stalls come with its section WarpStateStats.
std::vector<std::string> ncu_metrics();

/// Reads the log of one run, in which lines that begin with "==" are messages. Strict: every launch has each
/// metric, in a unit that is known; only the metrics that are optional in ProfiledLaunch may be missing or
/// "n/a". Throws Error(PermissionDenied) if the log says that the user may not read the counters,
/// Error(FailedPrecondition) if it has no launch, Error(InvalidArgument) at "FILE line 3, column 12 (NAME)"
/// for what does not read.
std::vector<ProfiledLaunch> read_ncu_csv(std::string_view text, const std::string& file);

}  // namespace cubind::ctl
