#pragma once

#include <string>
#include <string_view>

namespace cubind::worker {

/// NVRTC's log with a way out for each header that it did not find: where cubind looks, and for a header of
/// the CUDA toolkit the packages that bring it, of the release `major`.`minor` of NVRTC. Other lines are
/// returned unchanged.
std::string explain_missing_headers(std::string_view log, int major, int minor);

}  // namespace cubind::worker
