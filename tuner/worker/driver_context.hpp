// The worker's hold on one GPU: driver, NVML, and, once it is wanted, a context and a stream.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "cuda_api/device_facts.hpp"
#include "cuda_api/driver_api.hpp"
#include "cuda_api/nvml_api.hpp"

namespace cubind::worker {

/// Opening reads facts and takes no memory on the GPU; activate() creates the context. The primary context is
/// used: this process has no other user of the GPU, CUPTI sees it as any other, and its functions are the
/// same in every driver. One thread.
class DriverContext {
 public:
  /// Throws Error(FailedPrecondition) with the tried names if there is no driver, and Error(NotFound) that
  /// lists the visible GPUs.
  explicit DriverContext(const std::string& gpu,
                         std::shared_ptr<const cuda::DriverApi> driver = cuda::load_driver());
  ~DriverContext();
  DriverContext(const DriverContext&) = delete;
  DriverContext& operator=(const DriverContext&) = delete;

  const cuda::DriverApi& api() const { return *driver_; }
  /// Null without NVML; then nvml_device() is null too.
  const cuda::NvmlApi* nvml() const { return nvml_.get(); }
  cuda::NvmlDevice nvml_device() const { return nvml_device_; }
  const cuda::DeviceFacts& facts() const { return facts_; }
  const cuda::DriverVersion& driver_version() const { return version_; }

  bool active() const { return context_ != nullptr; }
  /// Creates the context and makes it this thread's. Throws DriverError.
  void activate();
  /// The stream of all the worker's work; active() only.
  cuda::Stream stream() const { return stream_; }
  /// Waits for it. Throws DriverError with a kernel's fault.
  void synchronize(std::string_view operation) const;
  /// Enqueues a copy on the device. Throws DriverError.
  void copy(cuda::DevicePtr to, cuda::DevicePtr from, std::uint64_t bytes) const;

  /// Free memory of the GPU: the driver's figure once active, before that NVML's; 0 if neither tells.
  std::uint64_t free_memory_bytes() const;

 private:
  std::shared_ptr<const cuda::DriverApi> driver_;
  std::shared_ptr<const cuda::NvmlApi> nvml_;
  cuda::DeviceOrdinal device_ = 0;
  cuda::NvmlDevice nvml_device_ = nullptr;
  cuda::DeviceFacts facts_;
  cuda::DriverVersion version_;
  cuda::Context context_ = nullptr;
  cuda::Stream stream_ = nullptr;
};

}  // namespace cubind::worker
