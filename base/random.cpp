#include "base/random.hpp"

#include <algorithm>
#include <bit>

#include "base/error.hpp"

namespace cubind {
namespace {

std::uint64_t split_mix(std::uint64_t& state) {
  state += 0x9e3779b97f4a7c15u;
  std::uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

std::array<std::uint64_t, 4> state_of(std::uint64_t seed) {
  std::array<std::uint64_t, 4> state;
  for (std::uint64_t& word : state) {
    word = split_mix(seed);
  }
  return state;
}

}  // namespace

Random::Random(const Digest& seed) : state_{} {
  if (seed.is_zero()) {
    state_ = state_of(0);
    return;
  }
  for (std::size_t i = 0; i < seed.bytes.size(); ++i) {
    state_[i / 8] |= std::uint64_t{seed.bytes[i]} << (8 * (i % 8));  // little-endian words
  }
}

Random::Random(std::uint64_t seed) : state_(state_of(seed)) {}

std::uint64_t Random::next() {
  const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const std::uint64_t t = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= t;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

std::uint64_t Random::below(std::uint64_t bound) {
  if (bound == 0) {
    throw Error(ErrorCode::Internal, "Random::below", "the bound is 0");
  }
  // The values below 2^64 mod bound would come up once more often than the others. They are below `bound` as
  // well, so that the division is hardly ever needed.
  std::uint64_t value = next();
  while (value < bound && value < (0 - bound) % bound) {
    value = next();
  }
  return value % bound;
}

double Random::uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

}  // namespace cubind
