// Elements of buffers on the host, in every type that a spec may name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "plan/dtype.hpp"

namespace cubind::verify {

/// The element's value; exact for every type but i64 beyond 2^53, which element_as_integer() is for.
/// `data` holds whole elements in the machine's byte order; `index` is below their number.
double element_as_double(DType type, std::span<const std::byte> data, std::uint64_t index);

/// The element of an integer type.
std::int64_t element_as_integer(DType type, std::span<const std::byte> data, std::uint64_t index);

/// Rounds to the type, to nearest even; integers are rounded towards zero and saturate. Used to make test
/// data and expected outputs.
void store_element(DType type, std::span<std::byte> data, std::uint64_t index, double value);

}  // namespace cubind::verify
