#include "tuner/worker/consent.hpp"

#include <algorithm>
#include <iterator>

namespace cubind::worker {
namespace {

// Memory that an idle GPU shows as used (its driver's own structures), and the overhead of our own
// allocations and modules. A foreign CUDA context on a large GPU alone takes more than this.
constexpr std::uint64_t kUnexplainedBytes = std::uint64_t{256} << 20;
// The limit on a busy GPU. It is not 0: a process that works has a context, and a GPU without one still shows
// as busy what a worker did that has just ended.
constexpr std::uint64_t kUnexplainedBusyBytes = std::uint64_t{16} << 20;
constexpr std::uint32_t kBusyPercent = 5;

bool contains(const std::vector<std::uint32_t>& list, std::uint32_t value) {
  return std::ranges::find(list, value) != list.end();
}

}  // namespace

void Consent::context_made(const GpuUse& after) {
  base_ = after;
  std::vector<std::uint32_t> newcomers;
  std::ranges::copy_if(after.processes, std::back_inserter(newcomers),
                       [this](std::uint32_t process) { return !contains(before_.processes, process); });
  // Two newcomers: the larger number is the younger process, if they are of one namespace; then the other is
  // foreign.
  if (!newcomers.empty()) {
    own_process_ = *std::ranges::max_element(newcomers);
  }
}

bool Consent::is_foreign(const GpuUse& now, std::uint64_t own_allocated, bool idle) const {
  if (own_process_) {
    return std::ranges::any_of(now.processes,
                               [this](std::uint32_t process) { return process != *own_process_; });
  }
  if (!now.processes.empty()) {
    return true;  // none of them is ours
  }
  return foreign_by_memory(now, own_allocated, idle);
}

bool Consent::foreign_by_memory(const GpuUse& now, std::uint64_t own_bytes, bool idle) const {
  const std::uint64_t explained = (base_ ? base_->memory_bytes : 0) + own_bytes;
  const bool busy = idle && now.utilization_percent.value_or(0) > kBusyPercent;
  return now.memory_bytes > explained + (busy ? kUnexplainedBusyBytes : kUnexplainedBytes);
}

std::string Consent::rule() const {
  const bool by_processes = own_process_ || (!base_ && !before_.processes.empty());
  return by_processes ? "processes" : "memory and utilization";
}

}  // namespace cubind::worker
