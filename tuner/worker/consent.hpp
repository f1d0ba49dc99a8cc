// Whether another process uses the GPU.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cubind::worker {

/// NVML's readings at one time.
struct GpuUse {
  std::vector<std::uint32_t> processes{};              // with a context; empty also where NVML lists none
  std::uint64_t memory_bytes = 0;                      // in use by any process
  std::optional<std::uint32_t> utilization_percent{};  // of the last sample period
};

/// Two rules. If NVML lists processes, every process but our own is foreign. In containers and some virtual
/// machines it lists none: there, memory in use beyond our own is foreign, and less of it suffices if the GPU
/// is busy while we are idle. Our own context decides which rule is in force: either it has appeared in the
/// list or it has not. (Our process id may be another one in NVML's eyes, so the newcomer of the list is
/// taken, not getpid().) Not thread-safe.
class Consent {
 public:
  /// Before our context exists.
  explicit Consent(const GpuUse& before) : before_(before) {}

  /// Right after our context was made.
  void context_made(const GpuUse& after);

  /// `own_allocated` is what we have allocated since; `idle` says that our own work cannot explain a busy
  /// GPU.
  bool is_foreign(const GpuUse& now, std::uint64_t own_allocated, bool idle) const;

  /// "processes" or "memory and utilization".
  std::string rule() const;

 private:
  bool foreign_by_memory(const GpuUse& now, std::uint64_t own_bytes, bool idle) const;

  GpuUse before_;
  std::optional<GpuUse> base_;                // with our context
  std::optional<std::uint32_t> own_process_;  // as NVML numbers it
};

}  // namespace cubind::worker
