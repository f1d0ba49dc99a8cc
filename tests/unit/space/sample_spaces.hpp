// Spaces for tests: small ones drawn at random, with all their valid configurations found by asking each
// combination, and large ones.
#pragma once

#include <string>
#include <vector>

#include "base/random.hpp"
#include "tuner/space/configuration_space.hpp"

namespace cubind::test {

struct SampleSpace {
  std::vector<Axis> axes;
  std::vector<std::string> constraints;

  std::vector<Check> checks() const;
};

/// Two to six axes of one to five values, up to six constraints over one to three of them with all operators.
SampleSpace random_space(Random& random);

/// 4^20 combinations, 1.1 * 10^12, with two constraints for each axis, between axes at most three apart.
SampleSpace large_space();

/// The same combinations with forty constraints that each read axes anywhere.
SampleSpace tangled_space();

/// The valid ones in canonical order.
std::vector<std::vector<std::int64_t>> brute_force(const std::vector<Axis>& axes,
                                                   const std::vector<Check>& checks);

}  // namespace cubind::test
