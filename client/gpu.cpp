#include "client/gpu.hpp"

#include <map>
#include <memory>
#include <mutex>
#include <string>
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

const cuda::DriverApi& driver_api() {
  const Libraries& opened = libraries();
  if (!opened.driver) {
    fail_without_gpu(opened.why_no_driver);
  }
  return *opened.driver;
}

std::vector<cuda::DeviceOrdinal> devices() {
  std::vector<cuda::DeviceOrdinal> visible = cuda::visible_devices(driver_api());
  if (visible.empty()) {
    fail_without_gpu("the driver shows this process no GPU");
  }
  return visible;
}

Gpu facts_of(cuda::DeviceOrdinal device) {
  static std::mutex mutex;
  static std::map<cuda::DeviceOrdinal, Gpu> known;  // guarded by mutex
  {
    const std::lock_guard lock(mutex);
    if (const auto found = known.find(device); found != known.end()) {
      return found->second;
    }
  }
  const cuda::NvmlApi* nvml = libraries().nvml.get();
  const Gpu gpu{cuda::read_device_facts(driver_api(), nvml, device),
                cuda::read_driver_version(driver_api(), nvml)};
  const std::lock_guard lock(mutex);
  return known.emplace(device, gpu).first->second;
}

}  // namespace

Gpu current_gpu() { return gpu_facts(visible_gpu(std::nullopt)); }

Gpu gpu_at(std::size_t ordinal) { return gpu_facts(visible_gpu(ordinal)); }

Gpu gpu_facts(const VisibleGpu& gpu) { return facts_of(gpu.device); }

VisibleGpu visible_gpu(std::optional<std::size_t> ordinal) {
  const cuda::DriverApi& driver = driver_api();
  const std::vector<cuda::DeviceOrdinal> visible = devices();
  if (ordinal && *ordinal >= visible.size()) {
    fail_without_gpu("the driver shows this process " + std::to_string(visible.size()) +
                     " GPUs, and none has number " + std::to_string(*ordinal));
  }
  cuda::DeviceOrdinal device = visible[ordinal.value_or(0)];
  cuda::Context context = nullptr;
  if (!ordinal && driver.ctx_get_current(&context) == cuda::Result::Success && context != nullptr) {
    cuda::check(driver, driver.ctx_get_device(&device), "cuCtxGetDevice");
  }
  return {driver, device};
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
