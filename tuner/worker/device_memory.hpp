// Memory on the GPU, within the share of it that the user grants.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>

#include "cuda_api/driver_api.hpp"

namespace cubind::worker {

/// The memory that trials may allocate together. Asking for more is the same DriverError(OutOfMemory) as when
/// the GPU itself is full, so that both have one outcome; its message names the limit. One thread.
class MemoryBudget {
 public:
  MemoryBudget(const cuda::DriverApi& api, std::uint64_t limit_bytes) : api_(api), limit_(limit_bytes) {}

  void take(std::uint64_t bytes);
  void give(std::uint64_t bytes) { taken_ -= bytes; }
  std::uint64_t taken_bytes() const { return taken_; }
  std::uint64_t limit_bytes() const { return limit_; }
  /// What is taken stays, also beyond the limit.
  void set_limit(std::uint64_t bytes) { limit_ = bytes; }
  const cuda::DriverApi& api() const { return api_; }

 private:
  const cuda::DriverApi& api_;
  std::uint64_t limit_;
  std::uint64_t taken_ = 0;
};

/// One allocation. Of size 0: none, address 0.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  /// Throws DriverError(OutOfMemory).
  DeviceMemory(MemoryBudget& budget, std::uint64_t bytes);
  ~DeviceMemory() { reset(); }
  DeviceMemory(DeviceMemory&& other) noexcept { swap(other); }
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    swap(other);
    return *this;
  }

  cuda::DevicePtr address() const { return address_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  void swap(DeviceMemory& other) noexcept;
  void reset() noexcept;

  MemoryBudget* budget_ = nullptr;
  cuda::DevicePtr address_ = 0;
  std::uint64_t bytes_ = 0;
};

/// Whether there was room for what `allocate` allocates.
template <std::invocable F>
bool allocates(F allocate) {
  try {
    allocate();
    return true;
  } catch (const cuda::DriverError& error) {
    if (error.result() != cuda::Result::OutOfMemory) {
      throw;
    }
    return false;
  }
}

}  // namespace cubind::worker
