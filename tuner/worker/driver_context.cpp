#include "tuner/worker/driver_context.hpp"

#include <utility>

namespace cubind::worker {

DriverContext::DriverContext(const std::string& gpu, std::shared_ptr<const cuda::DriverApi> driver)
    : driver_(std::move(driver)) {
  std::string tried;
  nvml_ = cuda::find_nvml(tried);
  device_ = cuda::select_device(*driver_, gpu);
  facts_ = cuda::read_device_facts(*driver_, nvml_.get(), device_);
  version_ = cuda::read_driver_version(*driver_, nvml_.get());
  if (nvml_ != nullptr) {
    nvml_device_ = cuda::find_nvml_device(*driver_, *nvml_, device_);
  }
}

DriverContext::~DriverContext() {
  // After a sticky error these fail, and the end of the process frees everything.
  if (stream_ != nullptr) {
    driver_->stream_destroy(stream_);
  }
  if (context_ != nullptr) {
    driver_->primary_ctx_release(device_);
  }
}

void DriverContext::activate() {
  if (active()) {
    return;
  }
  cuda::check(*driver_, driver_->primary_ctx_retain(&context_, device_), "cuDevicePrimaryCtxRetain");
  cuda::check(*driver_, driver_->ctx_set_current(context_), "cuCtxSetCurrent");
  cuda::check(*driver_, driver_->stream_create(&stream_, cuda::kStreamNonBlocking), "cuStreamCreate");
}

void DriverContext::synchronize(std::string_view operation) const {
  cuda::check(*driver_, driver_->stream_synchronize(stream_), operation);
}

void DriverContext::copy(cuda::DevicePtr to, cuda::DevicePtr from, std::uint64_t bytes) const {
  if (bytes > 0) {
    cuda::check(*driver_, driver_->memcpy_dtod_async(to, from, bytes, stream_), "copy on the device");
  }
}

std::uint64_t DriverContext::free_memory_bytes() const {
  std::size_t free = 0;
  std::size_t total = 0;
  if (active() && driver_->mem_get_info(&free, &total) == cuda::Result::Success) {
    return free;
  }
  return nvml_ != nullptr ? cuda::free_memory_bytes(*nvml_, nvml_device_) : 0;
}

}  // namespace cubind::worker
