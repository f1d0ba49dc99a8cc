// Turns a fill of a kernel spec into the content of a buffer.
//
//   normal       {mean = 0, deviation = 1}
//   uniform      {low = 0, high = 1}; integers are the whole part of a draw from [low, high)
//   constant     {value = 0}
//   iota         {start = 0, step = 1}: element i is start + i * step
//   permutation  {}: the numbers 0 to elements-1 in random order
//   choice       {count, exponent = 0}: numbers below count, number k with a weight of 1 / (k+1)^exponent
//                (Zipf; 0: even)
//   offsets      {total, sigma = none}: the first element 0, the last one total, random steps up between: a
//                total in ragged parts, of even draws, or of lognormal lengths; a sigma of 0 makes them equal
//   file         the file's bytes, exactly as many as the buffer has, whatever the seed; or those of a sealed
//                memfd of another process of this user
//
// Element i is a function of kind, parameters, seed and i.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "schemas/worker.pb.h"
#include "tuner/worker/own_kernels.hpp"

namespace cubind::worker {

/// The fills that the device generates itself; for the kinds `offsets` and `file` see fill_on_host(). Throws
/// Error(InvalidArgument) for an unknown kind or parameters that make no sense.
FillWork plan_fill(const v1::FillSpec& fill, std::uint64_t seed);

/// Whether any elements may be replaced by those of another seed: the content is no permutation, no row of
/// numbers and no file.
bool has_independent_elements(const v1::FillSpec& fill);

/// Whether the content is made on the host.
bool is_host_fill(const v1::FillSpec& fill);

/// Bytes that were made here, or those of another process's memory, which cannot change.
struct HostContent {
  std::shared_ptr<const void> owner;
  std::span<const std::byte> bytes;
};

/// The content of a host fill.
HostContent fill_on_host(const v1::FillSpec& fill, DType type, std::uint64_t elements, std::uint64_t seed);

/// The offsets themselves: non-decreasing, `elements` of them.
std::vector<std::uint64_t> make_offsets(std::uint64_t elements, std::uint64_t total, std::uint64_t seed,
                                        std::optional<double> sigma = std::nullopt);

/// The cumulative distribution of `choice`; the last entry is 1.
std::vector<double> zipf_distribution(std::uint64_t count, double exponent);

/// The seed of a buffer's content for one set of inputs.
std::uint64_t mix_seeds(std::uint64_t buffer_seed, std::uint64_t input_seed);

}  // namespace cubind::worker
