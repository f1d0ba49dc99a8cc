#pragma once

#include <string>
#include <vector>

#include "tuner/spec/spec_folder.hpp"

namespace cubind::ctl {

/// The specs of the folders that --kernels names, then the shipped ones: a changed copy of a shipped kernel
/// comes before the original. Throws InvalidArgument for what is no folder.
KnownSpecs known_specs(const std::vector<std::string>& folders);

}  // namespace cubind::ctl
