// The device class that a question is for.
#pragma once

#include <string>

#include "client/cubindctl/options.hpp"
#include "client/query.hpp"

namespace cubind::ctl {

/// That of --device; without it the GPU of this machine, else the one class that agents offer: a laptop asks
/// for what the daemon has. Throws Error(InvalidArgument) where agents offer none or several.
DeviceChoice asked_device(const std::string& label, const CommonOptions& common);

}  // namespace cubind::ctl
