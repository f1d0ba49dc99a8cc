#include "tuner/worker/device_memory.hpp"

#include <utility>

namespace cubind::worker {

void MemoryBudget::take(std::uint64_t bytes) {
  if (taken_ > limit_ || bytes > limit_ - taken_) {
    throw cuda::DriverError(api_, cuda::Result::OutOfMemory,
                            std::to_string(bytes) + " bytes in addition to the " + std::to_string(taken_) +
                                " in use exceed the share of " + std::to_string(limit_) +
                                " bytes (--memory-fraction)");
  }
  taken_ += bytes;
}

DeviceMemory::DeviceMemory(MemoryBudget& budget, std::uint64_t bytes) {
  if (bytes == 0) {
    return;
  }
  budget.take(bytes);
  const cuda::Result result = budget.api().mem_alloc(&address_, bytes);
  if (result != cuda::Result::Success) {
    budget.give(bytes);
    throw cuda::DriverError(budget.api(), result, "cuMemAlloc of " + std::to_string(bytes) + " bytes");
  }
  budget_ = &budget;
  bytes_ = bytes;
}

void DeviceMemory::swap(DeviceMemory& other) noexcept {
  std::swap(budget_, other.budget_);
  std::swap(address_, other.address_);
  std::swap(bytes_, other.bytes_);
}

void DeviceMemory::reset() noexcept {
  if (budget_ == nullptr) {
    return;
  }
  budget_->api().mem_free(address_);
  budget_->give(bytes_);
  budget_ = nullptr;
}

}  // namespace cubind::worker
