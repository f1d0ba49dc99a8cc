#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "schemas/agent.pb.h"
#include "schemas/worker.pb.h"

namespace cubind {

/// How a GPU is lent now.
struct GpuLend {
  std::vector<v1::Lender> lenders{};
  std::chrono::steady_clock::time_point since{};  // when the last of them came
  std::uint64_t ended = 0;                        // how many lends of the GPU have ended
  std::string refused{};                          // why a lend does not count; empty: all do

  bool is_lent() const { return !lenders.empty() || !refused.empty(); }
};

/// Why a process cannot lend this agent a GPU; empty: it can. The process must be alive, of the agent's user
/// and in its pid namespace: otherwise its number means nothing here.
std::string lend_refusal(const v1::LentGpu& lent, const std::string& own_host);

/// The GPUs that callers lend to this agent. Thread-safe.
class GpuLends {
 public:
  /// `own_host`: as process_host().
  explicit GpuLends(std::string own_host) : own_host_(std::move(own_host)) {}

  /// The daemon's word of all lends. Lends that do not count are logged.
  void replace(const v1::Lends& lends);
  GpuLend of(const std::string& gpu_uuid) const;

 private:
  const std::string own_host_;
  mutable std::mutex mutex_;
  std::map<std::string, GpuLend> gpus_;  // by UUID; guarded by mutex_
};

}  // namespace cubind
