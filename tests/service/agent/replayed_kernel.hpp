// A kernel with twelve configurations that NVRTC compiles, and a table in which each was measured.
#pragma once

#include <filesystem>
#include <string>

#include "schemas/agent.pb.h"

namespace cubind::test {

/// A=4,B=2 takes 10 us; every other one is slower by 30 % a step.
std::string replayed_table();

v1::LeaseGrant replayed_lease(const v1::OfferedDevice& device);

}  // namespace cubind::test
