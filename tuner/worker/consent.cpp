#include "tuner/worker/consent.hpp"

#include <algorithm>
#include <chrono>
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
// More than any GPU has: sums of what lenders state do not overflow.
constexpr std::uint64_t kMostStatedBytes = std::uint64_t{1} << 44;

// Of a process that lends the GPU, besides what it states: its context, modules and libraries' workspaces.
constexpr std::uint64_t kLenderBytes = std::uint64_t{1} << 30;

bool contains(const std::vector<std::uint32_t>& list, std::uint32_t value) {
  return std::ranges::find(list, value) != list.end();
}

bool lends(const Lend& lend, std::uint32_t process) {
  return std::ranges::find(lend.lenders, process, &Lender::process) != lend.lenders.end();
}

std::uint64_t lent_bytes(const Lend& lend) {
  std::uint64_t bytes = 0;
  for (const Lender& lender : lend.lenders) {
    const std::uint64_t stated = std::min(lender.memory_bytes, kMostStatedBytes);
    bytes += stated + kLenderBytes;
  }
  return bytes;
}

// What ends the use of the GPU by a process.
std::string way_out(const GpuUse& now, std::uint32_t process) {
  const auto idle = now.idle.find(process);
  if (idle == now.idle.end() || idle->second >= kIdleEnough) {
    return "end it, or tune from within it";
  }
  const auto left = std::chrono::ceil<std::chrono::seconds>(kIdleEnough - idle->second);
  return "end it, tune from within it, or leave it idle for " + std::to_string(left.count()) + " s more";
}

std::string in_gib(std::uint64_t bytes) {
  constexpr std::uint64_t kTenth = (std::uint64_t{1} << 30) / 10;
  const std::uint64_t tenths = bytes / kTenth;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " GiB";
}

}  // namespace

void Consent::context_made(const GpuUse& after, const Lend& lend) {
  // More than an idle GPU shows was the memory of others, whose end has to be seen.
  const std::uint64_t theirs = before_.memory_bytes > kUnexplainedBytes ? before_.memory_bytes : 0;
  base_bytes_ = after.memory_bytes - std::min(theirs, after.memory_bytes);
  std::vector<std::uint32_t> newcomers;
  std::ranges::copy_if(after.processes, std::back_inserter(newcomers), [&](std::uint32_t process) {
    return !contains(before_.processes, process) && !lends(lend, process);
  });
  // Two newcomers: the larger number is the younger process, if they are of one namespace; then the other is
  // foreign.
  if (!newcomers.empty()) {
    own_process_ = *std::ranges::max_element(newcomers);
  }
}

std::string Consent::others(const GpuUse& now, std::uint64_t own_allocated, bool idle,
                            const Lend& lend) const {
  const bool is_lent = !lend.lenders.empty();
  const bool busy = idle && (!is_lent || lend.rested) && now.utilization_percent.value_or(0) > kBusyPercent;
  if (is_lent && busy) {
    return "the GPU is lent and busy nevertheless (" + std::to_string(*now.utilization_percent) + " %)";
  }
  std::string listed = others_by_process(now, lend);
  const bool has_idle =
      std::ranges::any_of(now.processes, [&](std::uint32_t process) { return rests(now, process); });
  if (listed.empty() && has_idle && busy) {
    return "the GPU is busy (" + std::to_string(*now.utilization_percent) +
           " %), but by NVML's account every process on it is idle (end them, or tune from within the "
           "process)";
  }
  if (own_process_ || !listed.empty() || (has_idle && !base_bytes_)) {
    return listed;
  }
  return others_by_memory(now, own_allocated, idle, lend);
}

bool Consent::rests(const GpuUse& now, std::uint32_t process) const {
  const auto idle = now.idle.find(process);
  return idle != now.idle.end() && idle->second >= kIdleEnough && contains(before_.processes, process);
}

std::string Consent::others_by_process(const GpuUse& now, const Lend& lend) const {
  const auto other = std::ranges::find_if(now.processes, [&](std::uint32_t process) {
    return process != own_process_ && !lends(lend, process) && !rests(now, process);
  });
  if (other == now.processes.end()) {
    return "";
  }
  std::string who = "process " + std::to_string(*other) + " uses the GPU (" + way_out(now, *other) + ")";
  const auto unlisted = std::ranges::find_if(
      lend.lenders, [&](const Lender& lender) { return !contains(now.processes, lender.process); });
  if (unlisted != lend.lenders.end()) {
    who += "; NVML does not list process " + std::to_string(unlisted->process) +
           ", which lends it: it has no context, or its number is another one there";
  }
  return who;
}

std::string Consent::others_by_memory(const GpuUse& now, std::uint64_t own_bytes, bool idle,
                                      const Lend& lend) const {
  const std::uint64_t explained = base_bytes_.value_or(0) + own_bytes + lent_bytes(lend);
  const bool busy = idle && now.utilization_percent.value_or(0) > kBusyPercent;
  if (now.memory_bytes <= explained + (busy ? kUnexplainedBusyBytes : kUnexplainedBytes)) {
    return "";
  }
  return "others use " + in_gib(now.memory_bytes - explained) + " of the GPU's memory" +
         (busy ? ", and it is busy" : "") + " (end them, or tune from within the process)";
}

std::string Consent::rule() const {
  const bool by_processes = own_process_ || (!base_bytes_ && !before_.processes.empty());
  return by_processes ? "processes" : "memory and utilization";
}

}  // namespace cubind::worker
