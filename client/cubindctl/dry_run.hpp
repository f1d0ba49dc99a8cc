// cubindctl tune --dry-run: the effect that a Tune would have.
#pragma once

#include <string>

#include "client/cubindctl/exit_code.hpp"
#include "client/cubindctl/options.hpp"
#include "schemas/cubind.pb.h"

namespace cubind::ctl {

/// Prints the plan of the request; starts nothing.
ExitCode print_plan(const v1::TuneRequest& request, const CommonOptions& common);

/// "850 ms", "12 s", "3 min 20 s", "2 h 5 min".
std::string rough_time(double milliseconds);

}  // namespace cubind::ctl
