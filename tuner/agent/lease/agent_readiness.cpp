// What the agent gets ready before a job asks for it: compile workers, spare device workers, and compiles.
#include <map>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "tuner/agent/lease/agent.hpp"
#include "tuner/spec/wire.hpp"

namespace cubind {

namespace {

WantedCompiler wanted_on(const v1::OfferedDevice& offer) {
  return {.driver_cuda = offer.driver().cuda(), .architecture = architecture(offer.facts(), false)};
}

}  // namespace

// The NVRTCs that the jobs of the devices will take. Does not wait for them. Workers of Triton start when a
// job has such a kernel: many agents never get one.
void Agent::get_compilers_ready() {
  std::map<const Tool*, std::size_t> gpus;
  for (const auto& gpu : gpus_) {
    const v1::OfferedDevice& offer = gpu->device.offer;
    try {
      const Tool& tool = toolbox_->choose(wanted_on(offer));
      tool.compiles->keep_ready(ready_compilers(options_.compile_jobs, ++gpus[&tool]));
    } catch (const Error& error) {
      log_warning(offer.facts().name() + ": " + error.what());
    }
  }
}

const Tool& Agent::tool_for(const v1::OfferedDevice& offer, const v1::SpecBundle& kernel) const {
  const WantedCompiler wanted = wanted_on(offer);
  return toolbox_->choose(wanted_compiler(kernel, wanted.driver_cuda, wanted.architecture));
}

// One for a GPU: what was announced before is granted by now, or it went elsewhere.
void Agent::compile_ahead(const v1::LeaseGrant& job, AheadCompiles::Urgency urgency) {
  std::unique_ptr<AheadCompiles> before;
  try {
    const v1::OfferedDevice& offer = gpu_for(job).device.offer;
    v1::DeviceInfo device;
    *device.mutable_facts() = offer.facts();
    *device.mutable_driver() = offer.driver();
    const Tool& tool = tool_for(offer, job.spec());
    const std::lock_guard lock(mutex_);
    std::unique_ptr<AheadCompiles>& ahead = ahead_[job.gpu_uuid()];
    before = std::move(ahead);
    if (!draining_) {
      ahead = std::make_unique<AheadCompiles>(*tool.compiles, *tool.builds, job, std::move(device), urgency);
    }
  } catch (const Error& error) {
    log_info(job.job_id() + " is not compiled ahead: " + error.what());
  }
}

// Its thread is waited for: not under the lock.
void Agent::end_ahead(const std::string& gpu_uuid) {
  std::unique_ptr<AheadCompiles> ended;
  const std::lock_guard lock(mutex_);
  if (const auto found = ahead_.find(gpu_uuid); found != ahead_.end()) {
    ended = std::move(found->second);
  }
}

void Agent::end_all_ahead() {
  std::map<std::string, std::unique_ptr<AheadCompiles>> ended;
  const std::lock_guard lock(mutex_);
  ended.swap(ahead_);
}

// The offered devices are opened sooner; a job that comes at the agent's end needs none.
void Agent::keep_spares() {
  if (ending_.stop_requested()) {
    return;
  }
  for (const auto& gpu : gpus_) {
    gpu->keep_spare();
  }
}

}  // namespace cubind
