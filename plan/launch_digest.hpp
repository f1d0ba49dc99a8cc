#pragma once

#include "base/digest.hpp"
#include "plan/launch_plan.hpp"

namespace cubind {

class KeyEncoder;

/// Nothing where all have their defaults.
void put_attributes(KeyEncoder& key, const LaunchAttributes& attributes);

void put_tensor_map(KeyEncoder& key, const TensorMapTemplate& map);

/// Covers the constraints and every member of the launches, with their symbols. A template from a spec and
/// its copy in a reply's rule have the same digest.
Digest launch_digest(const PlanTemplate& plan);

}  // namespace cubind
