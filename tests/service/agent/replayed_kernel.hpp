// A kernel with twelve configurations that NVRTC compiles, and a table in which each was measured.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "schemas/agent.pb.h"
#include "tuner/spec/kernel_spec.hpp"
#include "tuner/table/table.hpp"

namespace cubind::test {

/// Measured on the device of example_facts(), and correct.
TableTrial replayed_trial(const std::string& kernel, const Problem& problem,
                          const Configuration& configuration, double time_us);
std::string replayed_table(std::vector<TableTrial> trials);
/// To tune this kernel on an offered device.
v1::LeaseGrant replayed_lease(const v1::OfferedDevice& device, const SpecBundle& bundle,
                              const Problem& problem);

/// Of "scale": A=4,B=2 takes 10 us; every other one is slower by 30 % a step.
std::string replayed_table();

v1::LeaseGrant replayed_lease(const v1::OfferedDevice& device);

}  // namespace cubind::test
