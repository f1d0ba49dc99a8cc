#include "tuner/agent/device/agent_gpu.hpp"

namespace cubind {

AgentGpu::AgentGpu(LocalDevice found, Spawner& spawner, const std::filesystem::path& worker_program)
    : device(std::move(found)),
      starter_(spawner, worker_program.string(), device.worker_arguments, device.worker_environment),
      spare_(starter_) {}

bool AgentGpu::is_idle() {
  const std::unique_lock idle(busy_, std::try_to_lock);
  return idle.owns_lock() && !worker_;
}

void AgentGpu::end_left_worker() {
  if (const std::unique_lock idle(busy_, std::try_to_lock); idle.owns_lock()) {
    worker_.reset();
  }
}

void AgentGpu::keep_spare() {
  if (const std::unique_lock idle(busy_, std::try_to_lock); idle.owns_lock() && !worker_) {
    spare_.keep();
  }
}

AgentGpu::Turn::Turn(AgentGpu& gpu, const JobStop& stop) : gpu_(gpu), busy_(gpu.busy_), stop_(stop) {
  stop_.check();
  if (!gpu_.worker_) {
    gpu_.worker_ = std::make_unique<WorkerLink>(gpu_.starter_, &gpu_.spare_);
  }
}

AgentGpu::Turn::~Turn() {
  if (stop_.requested() || !gpu_.worker_->is_started()) {
    gpu_.worker_.reset();
  }
}

}  // namespace cubind
