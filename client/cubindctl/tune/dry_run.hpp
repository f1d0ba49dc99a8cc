// cubindctl tune --dry-run: the effect that a Tune would have.
#pragma once

#include <vector>

#include "client/cubindctl/options.hpp"
#include "client/cubindctl/terminal/exit_code.hpp"
#include "client/cubindctl/tune/tune_requests.hpp"

namespace cubind::ctl {

/// Prints the plan of the requests, at least one; starts nothing.
ExitCode print_plan(const std::vector<KernelTune>& tunes, const CommonOptions& common);

}  // namespace cubind::ctl
