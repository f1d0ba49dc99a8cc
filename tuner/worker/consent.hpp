// Whether another process uses the GPU.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tuner/worker/idle_processes.hpp"

namespace cubind::worker {

/// NVML's readings at one time.
struct GpuUse {
  std::vector<std::uint32_t> processes{};              // with a context; empty also where NVML lists none
  std::uint64_t memory_bytes = 0;                      // in use by any process
  std::optional<std::uint32_t> utilization_percent{};  // of the last sample period
  IdleTimes idle{};                                    // of `processes`, where it is known
};

/// A process that lends the GPU.
struct Lender {
  std::uint32_t process = 0;
  std::uint64_t memory_bytes = 0;  // that it holds, without its context
};

struct Lend {
  std::vector<Lender> lenders{};  // none: the GPU is not lent
  /// So long after the lend began and after our last work that only others can keep the GPU busy.
  bool rested = false;
};

/// Two rules. If NVML lists processes, every process but our own is foreign. In containers and some virtual
/// machines it lists none: there, memory in use beyond our own is foreign, and less of it suffices if the GPU
/// is busy while we are idle. Our own context decides which rule is in force: either it has appeared in the
/// list or it has not. (Our process id may be another one in NVML's eyes, so the newcomer of the list is
/// taken, not getpid().)
///
/// A process that lends the GPU is no other user under either rule: its number, or the memory that it has
/// stated and a context's. It launches nothing meanwhile: a GPU that is busy though we are idle is in use.
///
/// Nor is a listed process that has done no work for kIdleEnough, until it works again. It must have been
/// there before our context: a process that comes now will work soon.
/// Not thread-safe.
class Consent {
 public:
  /// Before our context exists.
  explicit Consent(GpuUse before) : before_(std::move(before)) {}

  /// Our context is made next.
  void before_context(GpuUse before) { before_ = std::move(before); }
  /// Right after our context was made.
  void context_made(const GpuUse& after, const Lend& lend = {});

  /// The other user of the GPU; empty: none. `own_allocated` is what we have allocated since; `idle` says
  /// that our own work cannot explain a busy GPU.
  std::string others(const GpuUse& now, std::uint64_t own_allocated, bool idle, const Lend& lend = {}) const;

  /// "processes" or "memory and utilization".
  std::string rule() const;

 private:
  bool rests(const GpuUse& now, std::uint32_t process) const;
  std::string others_by_process(const GpuUse& now, const Lend& lend) const;
  std::string others_by_memory(const GpuUse& now, std::uint64_t own_bytes, bool idle, const Lend& lend) const;

  GpuUse before_;
  std::optional<std::uint64_t> base_bytes_;   // with our context, without the memory of others
  std::optional<std::uint32_t> own_process_;  // as NVML numbers it
};

}  // namespace cubind::worker
