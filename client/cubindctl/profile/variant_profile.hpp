// What the counters of the GPU say of a variant's launches.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tuner/spec/kernel_spec.hpp"

namespace cubind::ctl {

/// One reason why warps did not issue an instruction.
struct Stall {
  std::string reason;  // "long_scoreboard", as ncu names it
  double cycles = 0;   // of a warp, per instruction that it issues
  bool operator==(const Stall&) const = default;
};

/// How many blocks a resource allows on one SM.
struct BlockLimit {
  std::string resource;  // "registers", "shared_mem", "warps", "blocks"
  double blocks = 0;
  bool operator==(const BlockLimit&) const = default;
};

/// One launch, by the counters of ncu. Shares are between 0 and 1.
struct ProfiledLaunch {
  std::string entry_symbol;
  double time_us = 0;
  double read_bytes = 0, write_bytes = 0;  // of the GPU's memory; what stays in the L2 is not written
  double memory_share = 0;                 // of the peak rate of the memory
  double sm_share = 0;                     // of the peak rate of the SM's busiest part
  double occupancy = 0;                    // active warps of those that an SM can hold
  std::optional<double> tensor_share;  // of the time in which the tensor cores work; absent: no such counter
  std::optional<double> occupancy_limit;  // the highest that the launch allows
  std::optional<double> waves;            // blocks of the grid per blocks that the GPU holds at once
  std::optional<double> registers;        // per thread
  std::vector<BlockLimit> block_limits;   // fewest blocks first
  std::vector<Stall> stalls;              // longest first

  double moved_bytes() const { return read_bytes + write_bytes; }
};

/// A variant's launches on one problem. `launches` is not empty.
struct VariantProfile {
  std::vector<ProfiledLaunch> launches;
  WorkSizes work;
  std::uint32_t spilled_bytes = 0;  // the most of its entries, stores and loads

  double time_us() const;
  double moved_bytes() const;
  /// Bytes moved per byte that must move; absent if the spec does not say `work.bytes`.
  std::optional<double> traffic_ratio() const;
  /// The launch that takes the longest.
  const ProfiledLaunch& slowest() const;
};

}  // namespace cubind::ctl
