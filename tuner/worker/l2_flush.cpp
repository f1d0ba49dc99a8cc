#include "tuner/worker/l2_flush.hpp"

#include "tuner/verify/setup_memory.hpp"

namespace cubind::worker {

L2Flush::L2Flush(const DriverContext& context, OwnKernels& kernels, MemoryBudget& budget)
    : kernels_(kernels), memory_(budget, verify::flush_bytes(context.facts().l2_bytes)) {
  cuda::check(context.api(),
              context.api().memset_d32_async(memory_.address(), 0, memory_.bytes() / 4, context.stream()),
              "the buffer that flushes the L2");
}

void L2Flush::enqueue() const { kernels_.read(memory_.address(), memory_.bytes()); }

}  // namespace cubind::worker
