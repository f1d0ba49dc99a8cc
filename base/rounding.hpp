#pragma once

namespace cubind {

/// The least multiple of `step` that is not below `value`; both are unsigned, `step` is not 0.
template <typename Number>
constexpr Number rounded_up(Number value, Number step) {
  return (value + step - 1) / step * step;
}

}  // namespace cubind
