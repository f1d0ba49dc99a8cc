// The limits of an SM by compute capability, and how many of its threads a kernel's blocks can occupy.
#pragma once

#include <cstdint>
#include <optional>

namespace cubind {

/// What one block takes.
struct BlockNeeds {
  std::uint32_t threads = 0;
  std::uint32_t registers = 0;     // a thread
  std::uint64_t shared_bytes = 0;  // static and dynamic
};

/// Shared memory that a block may ask for at most on a device of compute capability 90. For an architecture
/// that is not listed, that of the nearest older one.
std::uint64_t shared_optin_bytes(std::uint32_t capability);

/// Blocks that reside on an SM at once; absent for an architecture that is not listed and for a block without
/// threads.
std::optional<std::uint32_t> blocks_per_sm(std::uint32_t cc_major, std::uint32_t cc_minor,
                                           const BlockNeeds& block);

/// Resident threads over the SM's limit, 0 to 1; absent as above.
std::optional<double> occupancy(std::uint32_t cc_major, std::uint32_t cc_minor, const BlockNeeds& block);

}  // namespace cubind
