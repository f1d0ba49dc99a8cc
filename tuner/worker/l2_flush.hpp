// A cold L2 before a sample.
#pragma once

#include "tuner/worker/device_memory.hpp"
#include "tuner/worker/driver_context.hpp"
#include "tuner/worker/own_kernels.hpp"

namespace cubind::worker {

/// kFlushMethod: a buffer of twice the L2 is read. After writing it, as do_bench does, the L2 holds lines
/// that are written back in the time of the variant, at one time more of them and at another fewer.
class L2Flush {
 public:
  /// What enqueue() launches: a timer tells it from the variant.
  static constexpr unsigned kKernels = 1;

  /// Throws DriverError.
  L2Flush(const DriverContext& context, OwnKernels& kernels, MemoryBudget& budget);
  /// Throws DriverError.
  void enqueue() const;

 private:
  OwnKernels& kernels_;
  DeviceMemory memory_;
};

}  // namespace cubind::worker
