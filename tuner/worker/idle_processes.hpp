// How long the processes on a GPU have done no work there.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <vector>

namespace cubind::worker {

/// After so long without work a process is idle.
inline constexpr std::chrono::milliseconds kIdleEnough{10'000};

/// By process. Processes of which nothing is known are absent.
using IdleTimes = std::map<std::uint32_t, std::chrono::milliseconds>;

/// That a process worked, as NVML tells it.
struct WorkSample {
  std::uint32_t process = 0;
  std::uint64_t at_us = 0;  // since the epoch; 0: an entry that NVML has left empty
};

/// Of the processes in `own`, those of `listed` that are of our user. `samples` hold the last work of each
/// process that NVML remembers. A process without one is idle for milliseconds::max().
///
/// Empty if the samples cannot be assigned to processes: `now_us` is by another clock, or a process that is
/// not listed has just worked, perhaps a listed one under another number.
IdleTimes idle_times(const std::vector<std::uint32_t>& listed, const std::vector<std::uint32_t>& own,
                     const std::vector<WorkSample>& samples, std::uint64_t now_us);

}  // namespace cubind::worker
