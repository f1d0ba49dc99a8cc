#include "client/gpu.hpp"

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "base/error.hpp"
#include "cuda_api/driver_api.hpp"
#include "cuda_api/nvml_api.hpp"

namespace cubind {
namespace {

[[noreturn]] void fail_without_gpu(const std::string& cause) {
  throw Error(ErrorCode::FailedPrecondition, "device",
              cause + "; name the GPU that the answer is for by its label, such as \"nvidia-h200\"");
}

struct Libraries {
  std::shared_ptr<const cuda::DriverApi> driver;
  std::shared_ptr<const cuda::NvmlApi> nvml;
  std::string why_no_driver;
};

// Opened once: starting NVML takes longer than the call to the daemon.
const Libraries& libraries() {
  static const Libraries opened = [] {
    Libraries result;
    result.driver = cuda::find_driver(result.why_no_driver);
    std::string tried;
    if (result.driver) {
      result.nvml = cuda::find_nvml(tried);
    }
    return result;
  }();
  return opened;
}

cuda::DeviceOrdinal current_device(const cuda::DriverApi& driver) {
  const std::vector<cuda::DeviceOrdinal> visible = cuda::visible_devices(driver);
  if (visible.empty()) {
    fail_without_gpu("the driver shows this process no GPU");
  }
  cuda::Context context = nullptr;
  cuda::DeviceOrdinal device = visible.front();
  if (driver.ctx_get_current(&context) == cuda::Result::Success && context != nullptr) {
    cuda::check(driver, driver.ctx_get_device(&device), "cuCtxGetDevice");
  }
  return device;
}

}  // namespace

Gpu current_gpu() {
  const Libraries& opened = libraries();
  if (!opened.driver) {
    fail_without_gpu(opened.why_no_driver);
  }
  const cuda::DeviceOrdinal device = current_device(*opened.driver);
  static std::mutex mutex;
  static std::map<cuda::DeviceOrdinal, Gpu> known;  // guarded by mutex
  {
    const std::lock_guard lock(mutex);
    if (const auto found = known.find(device); found != known.end()) {
      return found->second;
    }
  }
  const Gpu gpu{cuda::read_device_facts(*opened.driver, opened.nvml.get(), device),
                cuda::read_driver_version(*opened.driver, opened.nvml.get())};
  const std::lock_guard lock(mutex);
  return known.emplace(device, gpu).first->second;
}

bool has_gpu() {
  const Libraries& opened = libraries();
  try {
    return opened.driver && !cuda::visible_devices(*opened.driver).empty();
  } catch (const Error&) {
    return false;
  }
}

}  // namespace cubind
