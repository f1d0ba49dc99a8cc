// How many threads of an SM a kernel's blocks can occupy.
#pragma once

#include <cstdint>
#include <optional>

namespace cubind::measure {

/// What one block takes.
struct BlockNeeds {
  std::uint32_t threads = 0;
  std::uint32_t registers = 0;     // a thread
  std::uint64_t shared_bytes = 0;  // static and dynamic
};

/// Blocks that reside on an SM at once; absent for an architecture that is not listed and for a block without
/// threads.
std::optional<std::uint32_t> blocks_per_sm(std::uint32_t cc_major, std::uint32_t cc_minor,
                                           const BlockNeeds& block);

/// Resident threads over the SM's limit, 0 to 1; absent as above.
std::optional<double> occupancy(std::uint32_t cc_major, std::uint32_t cc_minor, const BlockNeeds& block);

}  // namespace cubind::measure
