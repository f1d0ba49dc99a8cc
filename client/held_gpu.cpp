#include "client/held_gpu.hpp"

#include <unistd.h>

#include "base/error.hpp"
#include "base/process_host.hpp"
#include "client/gpu.hpp"

namespace cubind {
namespace {

bool succeeds(cuda::Result result) { return result == cuda::Result::Success; }

/// Retains the primary context, which is current in this thread meanwhile.
class PrimaryContext {
 public:
  PrimaryContext(const cuda::DriverApi& driver, cuda::DeviceOrdinal device)
      : driver_(driver), device_(device) {
    cuda::Context context = nullptr;
    is_retained_ = succeeds(driver.primary_ctx_retain(&context, device));
    is_current_ = is_retained_ && succeeds(driver.ctx_get_current(&before_)) &&
                  succeeds(driver.ctx_set_current(context));
  }
  ~PrimaryContext() {
    if (is_current_) {
      driver_.ctx_set_current(before_);
    }
    if (is_retained_) {
      driver_.primary_ctx_release(device_);
    }
  }
  PrimaryContext(const PrimaryContext&) = delete;
  PrimaryContext& operator=(const PrimaryContext&) = delete;

  bool is_current() const { return is_current_; }

 private:
  const cuda::DriverApi& driver_;
  const cuda::DeviceOrdinal device_;
  cuda::Context before_ = nullptr;
  bool is_retained_ = false, is_current_ = false;
};

bool has_primary_context(const cuda::DriverApi& driver, cuda::DeviceOrdinal device) {
  unsigned flags = 0;
  int active = 0;
  return succeeds(driver.primary_ctx_get_state(device, &flags, &active)) && active != 0;
}

}  // namespace

std::optional<HeldGpu> synchronized_gpu(std::optional<std::size_t> ordinal) {
  try {
    const VisibleGpu gpu = visible_gpu(ordinal);
    if (!has_primary_context(gpu.driver, gpu.device)) {
      return std::nullopt;
    }
    const PrimaryContext context(gpu.driver, gpu.device);
    if (!context.is_current() || !succeeds(gpu.driver.ctx_synchronize())) {
      return std::nullopt;
    }
    return HeldGpu{gpu_facts(gpu).facts.uuid, static_cast<std::uint32_t>(::getpid()), process_host()};
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace cubind
