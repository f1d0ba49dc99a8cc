// Memory on the GPU behind whose end no address is valid.
#pragma once

#include <cstdint>

#include "tuner/worker/device_memory.hpp"

namespace cubind::worker {

/// One allocation. It takes up to a mapping's granularity, some MiB, more than its bytes.
class FencedMemory {
 public:
  /// The bytes begin at a multiple of `align`, a power of two, and end as near to the end of the mapping as
  /// that permits. Throws DriverError(OutOfMemory), also if the driver has no such memory.
  FencedMemory(MemoryBudget& budget, std::uint64_t bytes, std::uint64_t align);
  ~FencedMemory();
  FencedMemory(const FencedMemory&) = delete;
  FencedMemory& operator=(const FencedMemory&) = delete;

  cuda::DevicePtr address() const { return address_; }

 private:
  explicit FencedMemory(MemoryBudget& budget) : budget_(budget) {}

  MemoryBudget& budget_;
  cuda::DevicePtr reserved_ = 0, mapped_ = 0, address_ = 0;
  std::uint64_t reserved_bytes_ = 0, taken_bytes_ = 0;
};

}  // namespace cubind::worker
