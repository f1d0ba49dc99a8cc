// A kernel with twelve configurations that NVRTC compiles, and a table in which each was measured.
#pragma once

#include <filesystem>
#include <string>

#include "schemas/agent.pb.h"
#include "tests/support/replayed_trials.hpp"
#include "tuner/spec/kernel_spec.hpp"

namespace cubind::test {

/// To tune this kernel on an offered device.
v1::LeaseGrant replayed_lease(const v1::OfferedDevice& device, const SpecBundle& bundle,
                              const Problem& problem);

/// Of "scale": A=4,B=2 takes 10 us; every other one is slower by 30 % a step.
std::string replayed_table();

v1::LeaseGrant replayed_lease(const v1::OfferedDevice& device);

}  // namespace cubind::test
