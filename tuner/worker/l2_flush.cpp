#include "tuner/worker/l2_flush.hpp"

#include <algorithm>

namespace cubind::worker {
namespace {

// Where the driver does not tell the L2's size.
constexpr std::uint64_t kLeastBytes = std::uint64_t{64} << 20;

}  // namespace

L2Flush::L2Flush(const DriverContext& context, MemoryBudget& budget)
    : context_(context), memory_(budget, std::max(2 * context.facts().l2_bytes, kLeastBytes)) {}

void L2Flush::enqueue() const {
  cuda::check(context_.api(),
              context_.api().memset_d32_async(memory_.address(), 0, memory_.bytes() / 4, context_.stream()),
              "flush of the L2");
}

}  // namespace cubind::worker
