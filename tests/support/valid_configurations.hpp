// All configurations of a small space.
#pragma once

#include <vector>

#include "tuner/spec/space.hpp"

namespace cubind::test {

/// In the order of their numbers.
inline std::vector<Configuration> valid_configurations(const KernelSpec& spec, const Problem& problem,
                                                       const DeviceConstants& device) {
  const KernelSpace space(spec, problem, device);
  std::vector<Configuration> valid;
  for (std::uint64_t number = 0; number < space.numbers().count(); ++number) {
    valid.push_back(space.configuration(number));
  }
  return valid;
}

}  // namespace cubind::test
