// Jobs that have failed, so that misses do not repeat them.
#include <algorithm>
#include <utility>

#include "server/jobs/scheduler_state.hpp"
#include "server/store/store.hpp"

namespace cubind {

std::optional<std::string> Scheduler::failed_lately(const Digest& key, bool for_bucket) const {
  const auto found = state_->failures.find(key);
  if (found == state_->failures.end() ||
      found->second.revision != state_->revision_of(found->second.kernel)) {
    return std::nullopt;
  }
  const State::Failure& failure = found->second;
  const bool out_of_memory = failure.needs_bytes > 0;
  if (out_of_memory && for_bucket && !failure.for_bucket) {
    return std::nullopt;
  }
  const bool over = out_of_memory ? state_->may_fit(failure) : failure.until <= state_->clock.steady_now();
  return over ? std::nullopt : std::optional(failure.error);
}

// An agent that cannot tell what is free (no NVML) is tried again after the pause.
bool Scheduler::State::may_fit(const Failure& failure) const {
  const auto fits = [&](const OfferedDevice& device) {
    return device.device.digest == failure.device_class &&
           (device.trial_memory_bytes == 0 ? failure.until <= clock.steady_now()
                                           : device.trial_memory_bytes >= failure.needs_bytes);
  };
  return std::ranges::any_of(
      agents, [&](const auto& agent) { return std::ranges::any_of(agent.second.profile.devices, fits); });
}

void Scheduler::State::note_failure(const JobRow& row) {
  const SteadyTime now = clock.steady_now();
  std::erase_if(failures, [&](const auto& item) {
    return item.first == row.key || (item.second.needs_bytes == 0 && item.second.until <= now);
  });
  if (row.state == JobState::Failed) {
    failures[row.key] = {row.error,
                         now + options.failure_pause,
                         row.question.kernel,
                         revision_of(row.question.kernel),
                         row.question.device_class,
                         row.for_bucket,
                         row.needs_bytes};
  }
  watch_memory();
}

void Scheduler::State::load_failures() {
  std::vector<JobRow> rows;
  store.read([&](StoreReader& reader) { rows = reader.out_of_memory_jobs(); });
  for (const JobRow& row : rows) {
    note_failure(row);
  }
}

std::uint64_t Scheduler::State::memory_needed(const Digest& key) const {
  const auto found = failures.find(key);
  return found == failures.end() || found->second.revision != revision_of(found->second.kernel)
             ? 0
             : found->second.needs_bytes;
}

// 0: nothing. What the GPU does not have in all is not waited for, nor what a kernel of another spec needed.
std::uint64_t Scheduler::State::memory_to_watch(const OfferedDevice& device) const {
  std::uint64_t least = 0;
  for (const auto& [key, failure] : failures) {
    const std::uint64_t needs = memory_needed(key);
    const bool is_waited_for = failure.device_class == device.device.digest &&
                               needs > device.trial_memory_bytes && needs <= device.device.facts.memory_bytes;
    if (is_waited_for && (least == 0 || needs < least)) {
      least = needs;
    }
  }
  return device.trial_memory_bytes == 0 ? 0 : least;
}

void Scheduler::State::watch_memory() {
  for (auto& [id, agent] : agents) {
    for (const OfferedDevice& device : agent.profile.devices) {
      const std::uint64_t bytes = memory_to_watch(device);
      if (std::exchange(agent.watched[device.uuid], bytes) != bytes) {
        agent.link->watch_memory(device.uuid, bytes);
      }
    }
  }
}

}  // namespace cubind
