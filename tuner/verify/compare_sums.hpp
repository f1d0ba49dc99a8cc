// Compares an output of partial sums, whose blocks depend on the configuration: one summand for each block,
// and the caller adds up as many as the launched configuration writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "plan/dtype.hpp"
#include "tuner/verify/compare.hpp"

namespace cubind::verify {

/// The sums along the axis of the shape for which they agree best, each compared within atol + rtol times the
/// sum of the magnitudes, which for `out` is at most the largest of the reference's; indices are those of the
/// line's first element. An element whose bytes are all `poison` was not written.
///
/// Absent if sums say nothing: both wrote the same elements, the type is no floating-point type, a sum is not
/// finite, or along each axis there is one line alone, or a line that one side left unwritten. The axes are
/// those of the whole buffer, outermost first, else Error(Internal).
std::optional<Comparison> compare_sums(DType type, std::span<const std::byte> out,
                                       std::span<const std::byte> ref, std::span<const std::uint64_t> shape,
                                       std::byte poison, Bounds bounds);

}  // namespace cubind::verify
