#pragma once

#include <memory>
#include <vector>

#include "cuda_api/driver_api.hpp"

namespace cubind::test {

/// Device memory with this content, in the current context.
template <typename T>
class OnDevice {
 public:
  explicit OnDevice(const std::vector<T>& content) : count_(content.size()) {
    cuda::check(*api_, api_->mem_alloc(&address_, count_ * sizeof(T)), "mem_alloc");
    cuda::check(*api_, api_->memcpy_htod(address_, content.data(), count_ * sizeof(T)), "upload");
  }
  ~OnDevice() { api_->mem_free(address_); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

  cuda::DevicePtr address() const { return address_; }
  std::vector<T> content() const {
    std::vector<T> content(count_);
    cuda::check(*api_, api_->ctx_synchronize(), "running");
    cuda::check(*api_, api_->memcpy_dtoh(content.data(), address_, count_ * sizeof(T)), "download");
    return content;
  }

 private:
  std::shared_ptr<const cuda::DriverApi> api_ = cuda::load_driver();
  cuda::DevicePtr address_ = 0;
  std::size_t count_ = 0;
};

}  // namespace cubind::test
