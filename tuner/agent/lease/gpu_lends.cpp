#include "tuner/agent/lease/gpu_lends.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/log.hpp"
#include "base/text.hpp"

namespace cubind {
namespace {

using Lenders = std::vector<v1::Lender>;

bool has(const Lenders& lenders, std::uint32_t process) {
  return std::ranges::any_of(lenders, [&](const v1::Lender& one) { return one.pid() == process; });
}

std::uint64_t missing(const Lenders& from, const Lenders& now) {
  return static_cast<std::uint64_t>(
      std::ranges::count_if(from, [&](const v1::Lender& one) { return !has(now, one.pid()); }));
}

/// Several calls of one process state its memory at different times.
void add(const v1::LentGpu& lent, Lenders& lenders) {
  const auto same = std::ranges::find_if(lenders, [&](const auto& one) { return one.pid() == lent.pid(); });
  v1::Lender& lender = same == lenders.end() ? lenders.emplace_back() : *same;
  lender.set_pid(lent.pid());
  lender.set_memory_bytes(std::max(lender.memory_bytes(), lent.memory_bytes()));
}

}  // namespace

std::string lend_refusal(const v1::LentGpu& lent, const std::string& own_host) {
  const std::string who = "process " + std::to_string(lent.pid()) + " lends the GPU";
  if (own_host.empty()) {
    return who + ", but the agent has no /proc to find it in";
  }
  if (lent.host() != own_host) {
    return who + ", but runs on another machine or in another container (pid namespace) than the agent";
  }
  struct stat process {};
  if (::stat(("/proc/" + std::to_string(lent.pid())).c_str(), &process) != 0) {
    return who + ", but there is no such process";
  }
  if (process.st_uid != ::geteuid()) {
    return who + ", but belongs to another user than the agent";
  }
  return "";
}

void GpuLends::replace(const v1::Lends& lends) {
  std::map<std::string, GpuLend> now;
  for (const v1::LentGpu& lent : lends.gpus()) {
    GpuLend& gpu = now[lent.uuid()];
    const std::string refusal = lend_refusal(lent, own_host_);
    if (refusal.empty()) {
      add(lent, gpu.lenders);
    } else {
      gpu.refused = refusal;
    }
  }
  const std::lock_guard lock(mutex_);
  for (const auto& [uuid, before] : gpus_) {
    now[uuid].ended = before.ended + missing(before.lenders, now[uuid].lenders);
  }
  for (auto& [uuid, gpu] : now) {
    const bool has_newcomer = missing(gpu.lenders, gpus_[uuid].lenders) > 0;
    gpu.since = has_newcomer ? std::chrono::steady_clock::now() : gpus_[uuid].since;
    if (!gpu.refused.empty() && gpu.refused != gpus_[uuid].refused) {
      log_warning(quoted(uuid) + ": " + gpu.refused + ": it counts as another user");
    }
  }
  gpus_ = std::move(now);
}

GpuLend GpuLends::of(const std::string& gpu_uuid) const {
  const std::lock_guard lock(mutex_);
  const auto found = gpus_.find(gpu_uuid);
  return found == gpus_.end() ? GpuLend() : found->second;
}

}  // namespace cubind
