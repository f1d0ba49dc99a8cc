// What the worker's kernels do on the device, on the host: GPU tests compare the two.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "plan/dtype.hpp"
#include "tuner/verify/compare.hpp"
#include "tuner/verify/red_zone.hpp"

namespace cubind::verify {

/// The element's value; exact for every type but i64 beyond 2^53.
double element_as_double(DType type, std::span<const std::byte> data, std::uint64_t index);

/// Rounds to the type, to nearest even; integers are rounded towards zero and saturate.
void store_element(DType type, std::span<std::byte> data, std::uint64_t index, double value);

/// Both buffers hold the same number of whole elements. Integers are compared without rounding.
Comparison compare(DType out_type, std::span<const std::byte> out, DType ref_type,
                   std::span<const std::byte> ref, Bounds bounds);

void paint_red_zone(std::span<std::byte> bytes, Zone zone);

/// Absent if the zone is as painted.
std::optional<ZoneDamage> check_red_zone(std::span<const std::byte> bytes, Zone zone);

}  // namespace cubind::verify
