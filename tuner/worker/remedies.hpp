#pragma once

#include <string>
#include <string_view>

namespace cubind::worker {

/// NVRTC's log with a way out behind errors that public kernels meet: names that nvcc brings without an
/// include, what the stand-ins for the C++ standard library lack, and host code. Other lines are unchanged.
std::string with_remedies(std::string_view log);

}  // namespace cubind::worker
