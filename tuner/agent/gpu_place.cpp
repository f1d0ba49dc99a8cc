#include "tuner/agent/gpu_place.hpp"

namespace cubind {

bool GpuPlace::is_idle() {
  const std::unique_lock idle(busy_, std::try_to_lock);
  return idle.owns_lock() && !worker_;
}

void GpuPlace::end_left_worker() {
  if (const std::unique_lock idle(busy_, std::try_to_lock); idle.owns_lock()) {
    worker_.reset();
  }
}

GpuPlace::Turn::Turn(GpuPlace& place, Spawner& spawner, const std::filesystem::path& worker_program,
                     const JobStop& stop)
    : place_(place), busy_(place.busy_), stop_(stop) {
  stop_.check();
  if (!place_.worker_) {
    place_.worker_ = std::make_unique<WorkerLink>(
        spawner, worker_program.string(), place_.device.worker_arguments, place_.device.worker_environment);
  }
}

GpuPlace::Turn::~Turn() {
  if (stop_.requested() || !place_.worker_->is_started()) {
    place_.worker_.reset();
  }
}

}  // namespace cubind
