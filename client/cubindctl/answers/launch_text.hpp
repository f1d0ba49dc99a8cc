#pragma once

#include <string>
#include <vector>

#include "plan/launch_plan.hpp"

namespace cubind::ctl {

/// "scale<float> grid 32x1x1 block 256x1x1 cluster 2x1x1 shared 0 B"
std::string launch_text(const Launch& launch);
/// "a_map of a: bf16 [1024, 64], strides [2048], box [64, 64], swizzle 128B"
std::vector<std::string> tensor_map_texts(const Launch& launch);

}  // namespace cubind::ctl
