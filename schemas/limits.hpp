// Limits that both ends of the protocols keep.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cubind {

// The protocol versions of agent.proto that this build speaks, as agent and as daemon.
inline constexpr std::uint32_t kOldestAgentProtocol = 1;
inline constexpr std::uint32_t kAgentProtocol = 1;
inline constexpr std::int64_t kMaxDim = std::int64_t{1} << 48;    // extents stay within 64 bits
inline constexpr int kMaxListed = 64;                             // configurations of a Tune that lists them
inline constexpr int kMaxRounds = 2000;                           // of their finalists
inline constexpr int kMaxProblems = 1000;                         // of one Tune
inline constexpr std::size_t kChunkBytes = std::size_t{1} << 20;  // of what is streamed
inline constexpr std::size_t kMaxCubinBytes = std::size_t{256} << 20;
inline constexpr double kMaxTimeUs = 3.6e9;  // of one sample: an hour
// zstd bytes of the cubins within another message: gRPC's limit of 4 MiB would end a lease stream with all
// its leases.
inline constexpr std::size_t kMaxInlineCubinBytes = std::size_t{3} << 20;

}  // namespace cubind
