#include "tuner/worker/started_driver.hpp"

#include <future>
#include <string>

#include "base/error.hpp"
#include "base/log.hpp"
#include "cuda_api/device_facts.hpp"
#include "cuda_api/driver_api.hpp"
#include "tuner/worker/driver_context.hpp"
#include "tuner/worker/nvml_monitor.hpp"

namespace cubind::worker {
namespace {

void read_each_gpu(const std::shared_ptr<const cuda::DriverApi>& driver) {
  for (std::size_t i = 0; i < cuda::visible_devices(*driver).size(); ++i) {
    const DriverContext gpu(std::to_string(i), driver);
    NvmlMonitor(gpu).use();
  }
}

}  // namespace

StartedDriver::StartedDriver() {
  auto nvml = std::async(std::launch::async, [] {
    std::string tried;
    return cuda::find_nvml(tried);
  });
  try {
    std::string why;
    if (const auto driver = cuda::find_driver(why)) {
      driver->init(0);
      nvml_ = nvml.get();
      read_each_gpu(driver);
    }
  } catch (const Error& error) {
    log_debug(error.what());
  }
}

}  // namespace cubind::worker
