// What the agent offers of its devices, and how that changes.
#include <algorithm>
#include <utility>

#include "tuner/agent/lease/agent.hpp"
#include "tuner/agent/tuning/memory_refusal.hpp"

namespace cubind {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// Less than a CUDA context takes: a process that comes or goes is noticed.
constexpr std::uint64_t kNoticeableMemory = 256 << 20;

// What others allocate and free all the time is not worth an offer.
bool is_noticeable(std::uint64_t now, std::uint64_t offered) {
  const std::uint64_t change = now > offered ? now - offered : offered - now;
  return change > std::min(offered / 20, kNoticeableMemory);
}

}  // namespace

// Says which rule of consent is in force, once a context has shown it.
void Agent::offer_again(AgentGpu& gpu, const v1::DeviceInfo& info) {
  v1::AgentMessage message;
  {
    const std::lock_guard lock(mutex_);
    v1::OfferedDevice& offer = gpu.device.offer;
    const std::string consent = consent_text(options_.tune_when, info.consent_rule());
    if (offer.consent() == consent) {
      return;
    }
    offer.set_consent(consent);
    message = offers();
  }
  stream_->send(message);
}

v1::AgentMessage Agent::offers() {
  v1::AgentMessage message;
  for (const auto& one : gpus_) {
    *message.mutable_devices()->add_devices() = one->device.offer;
  }
  return message;
}

// The free memory without a worker of ours, for later comparison.
void Agent::say_what_there_is(AgentGpu& gpu, v1::JobResult& refused) {
  const auto found = trial_memory(options_, spawner_, ending_.get_token());
  v1::AgentMessage message;
  {
    const std::lock_guard lock(mutex_);
    v1::OfferedDevice& offer = gpu.device.offer;
    const auto allowed = found.find(offer.uuid());
    if (allowed != found.end()) {
      offer.set_trial_memory_bytes(allowed->second);
      refused.set_needs_bytes(memory_to_wait_for(refused.needs_bytes(), allowed->second));
    }
    message = offers();
  }
  stream_->send(message);
}

// Aside: a driver may take its time, and heartbeats go on.
void Agent::look_at_memory() {
  offer_changed_memory();
  const auto now = steady_clock::now();
  const bool looks = looking_.valid() && looking_.wait_for(milliseconds(0)) != std::future_status::ready;
  const bool any_idle = std::ranges::any_of(gpus_, [](const auto& gpu) { return gpu->is_idle(); });
  if (looks || !any_idle || now - looked_ < options_.memory_poll) {
    return;
  }
  looked_ = now;
  looking_ = std::async(std::launch::async, [this] { note_memory_of_idle(); });
}

// Where a job of ours runs its worker has taken some: what is free then says nothing.
void Agent::note_memory_of_idle() {
  std::vector<AgentGpu*> idle;
  for (const auto& gpu : gpus_) {
    if (gpu->is_idle()) {
      idle.push_back(gpu.get());
    }
  }
  const auto found = trial_memory(options_, spawner_, ending_.get_token());
  const std::lock_guard lock(mutex_);
  for (AgentGpu* gpu : idle) {
    v1::OfferedDevice& offer = gpu->device.offer;
    const auto free = found.find(offer.uuid());
    if (free != found.end() && is_noticeable(free->second, offer.trial_memory_bytes()) && gpu->is_idle()) {
      offer.set_trial_memory_bytes(free->second);
      memory_has_changed_ = true;
    }
  }
}

void Agent::offer_changed_memory() {
  v1::AgentMessage message;
  {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(memory_has_changed_, false)) {
      return;
    }
    message = offers();
  }
  stream_->send(message);
}

}  // namespace cubind
