#include "tuner/agent/device/gpu_place.hpp"

namespace cubind {

GpuPlace::GpuPlace(LocalDevice found, Spawner& spawner, const std::filesystem::path& worker_program)
    : device(std::move(found)),
      starter_(spawner, worker_program.string(), device.worker_arguments, device.worker_environment),
      spare_(starter_) {}

bool GpuPlace::is_idle() {
  const std::unique_lock idle(busy_, std::try_to_lock);
  return idle.owns_lock() && !worker_;
}

void GpuPlace::end_left_worker() {
  if (const std::unique_lock idle(busy_, std::try_to_lock); idle.owns_lock()) {
    worker_.reset();
  }
}

void GpuPlace::keep_spare() {
  if (const std::unique_lock idle(busy_, std::try_to_lock); idle.owns_lock() && !worker_) {
    spare_.keep();
  }
}

GpuPlace::Turn::Turn(GpuPlace& place, const JobStop& stop) : place_(place), busy_(place.busy_), stop_(stop) {
  stop_.check();
  if (!place_.worker_) {
    place_.worker_ = std::make_unique<WorkerLink>(place_.starter_, &place_.spare_);
  }
}

GpuPlace::Turn::~Turn() {
  if (stop_.requested() || !place_.worker_->is_started()) {
    place_.worker_.reset();
  }
}

}  // namespace cubind
