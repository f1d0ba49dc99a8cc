#include "tuner/worker/l2_flush.hpp"

#include "tuner/verify/setup_memory.hpp"

namespace cubind::worker {

L2Flush::L2Flush(const DriverContext& context, MemoryBudget& budget)
    : context_(context), memory_(budget, verify::flush_bytes(context.facts().l2_bytes)) {}

void L2Flush::enqueue() const {
  cuda::check(context_.api(),
              context_.api().memset_d32_async(memory_.address(), 0, memory_.bytes() / 4, context_.stream()),
              "flush of the L2");
}

}  // namespace cubind::worker
