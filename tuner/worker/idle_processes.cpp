#include "tuner/worker/idle_processes.hpp"

#include <algorithm>

namespace cubind::worker {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// In the year 2001. On some systems NVML counts from boot: such a time is earlier, for 31 years.
constexpr std::uint64_t kEarliestUs = 1'000'000'000'000'000;

milliseconds since(const WorkSample& sample, std::uint64_t now_us) {
  const microseconds ago(now_us - std::min(sample.at_us, now_us));
  return std::chrono::duration_cast<milliseconds>(ago);
}

}  // namespace

IdleTimes idle_times(const std::vector<std::uint32_t>& listed, const std::vector<std::uint32_t>& own,
                     const std::vector<WorkSample>& samples, std::uint64_t now_us) {
  IdleTimes idle;
  for (const std::uint32_t process : own) {
    idle[process] = milliseconds::max();
  }
  for (const WorkSample& sample : samples) {
    if (sample.at_us == 0) {
      continue;
    }
    const milliseconds ago = since(sample, now_us);
    const bool is_listed = std::ranges::find(listed, sample.process) != listed.end();
    if (sample.at_us < kEarliestUs || (!is_listed && ago < kIdleEnough)) {
      return {};
    }
    if (const auto found = idle.find(sample.process); found != idle.end()) {
      found->second = std::min(found->second, ago);
    }
  }
  return idle;
}

}  // namespace cubind::worker
