#include "tuner/worker/started_driver.hpp"

#include <future>
#include <string>

#include "base/error.hpp"
#include "base/log.hpp"
#include "cuda_api/driver_api.hpp"

namespace cubind::worker {

StartedDriver::StartedDriver() {
  auto nvml = std::async(std::launch::async, [] {
    std::string tried;
    return cuda::find_nvml(tried);
  });
  try {
    std::string why;
    if (const auto driver = cuda::find_driver(why)) {
      driver->init(0);
    }
  } catch (const Error& error) {
    log_debug(error.what());
  }
  nvml_ = nvml.get();
}

}  // namespace cubind::worker
