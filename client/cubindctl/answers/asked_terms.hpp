// What the options of a question ask the daemon for.
#pragma once

#include <string>

#include "client/cubindctl/options.hpp"
#include "client/query.hpp"

namespace cubind::ctl {

/// That of --device; without it the GPU of this machine, else the one class that agents offer: a laptop asks
/// for what the daemon has. Throws Error(InvalidArgument) if agents offer none or several, but
/// Error(NotFound) if there is no such kernel either.
DeviceChoice asked_device(const std::string& kernel, const std::string& label, const CommonOptions& common);

/// A question by these options, but for its kernel, problem and device.
Query asked_query(const QuestionOptions& options);

}  // namespace cubind::ctl
