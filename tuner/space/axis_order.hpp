// The order in which a diagram takes the axes. What matters is how much of what was chosen must be remembered
// further down: an axis is forgotten behind the last check that reads it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tuner/space/check.hpp"

namespace cubind {

inline constexpr std::size_t kMaxAxes = 64;

/// The axes in declared order.
std::vector<std::uint32_t> declared_order(std::size_t axes);

/// An order with narrow frontiers: greedily from each axis in turn, the narrowest of these. Axes that no
/// check connects never remember each other. At most kMaxAxes axes.
std::vector<std::uint32_t> narrow_order(std::span<const Axis> axes, std::span<const Check> checks);

/// For each level of the order the axes that later checks still read, of those taken so far.
std::vector<std::vector<std::uint32_t>> frontiers(std::span<const std::uint32_t> order,
                                                  std::span<const Axis> axes, std::span<const Check> checks);

/// The widest frontier, as the log2 of the number of its combinations: how many states a level can have at
/// most, though checks usually leave far fewer.
double width_bits(std::span<const std::uint32_t> order, std::span<const Axis> axes,
                  std::span<const Check> checks);

}  // namespace cubind
