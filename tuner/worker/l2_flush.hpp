// A cold L2 before a sample.
#pragma once

#include "tuner/worker/device_memory.hpp"
#include "tuner/worker/driver_context.hpp"

namespace cubind::worker {

/// kFlushMethod: a buffer of twice the L2 is written, as do_bench does. Reading it back as well changes
/// results by up to 20 %, so the method's number is part of the policy. A memset: no kernel, so that no
/// kernel record of it exists.
class L2Flush {
 public:
  L2Flush(const DriverContext& context, MemoryBudget& budget);
  /// Throws DriverError.
  void enqueue() const;

 private:
  const DriverContext& context_;
  DeviceMemory memory_;
};

}  // namespace cubind::worker
