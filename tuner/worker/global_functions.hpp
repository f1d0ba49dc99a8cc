#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cubind::worker {

/// The names behind __global__ in a source, in order, to name them in a message: it is not preprocessed.
std::vector<std::string> global_functions(std::string_view source);

}  // namespace cubind::worker
