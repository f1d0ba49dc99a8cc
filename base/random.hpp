#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "base/digest.hpp"

namespace cubind {

/// xoshiro256**, whose every result is pinned by tests: the order of measuring rounds and the samples of the
/// replay device are functions of a key, the same with every compiler and library (std::shuffle and the
/// distributions of <random> are not). Not for secrets. Not thread-safe.
class Random {
 public:
  /// The digest is the state (an all-zero one, which xoshiro cannot start from, is replaced by seed 0's).
  explicit Random(const Digest& seed);
  /// The state is four values of SplitMix64.
  explicit Random(std::uint64_t seed);

  std::uint64_t next();

  /// Uniform in [0, bound); bound is at least 1, else Internal is thrown. Unbiased by rejection.
  std::uint64_t below(std::uint64_t bound);

  /// Uniform in [0, 1), 53 bits.
  double uniform();

  /// Fisher-Yates from the back.
  template <typename T>
  void shuffle(std::span<T> items) {
    for (std::size_t i = items.size(); i > 1; --i) {
      using std::swap;
      swap(items[i - 1], items[static_cast<std::size_t>(below(i))]);
    }
  }

 private:
  std::array<std::uint64_t, 4> state_;
};

}  // namespace cubind
