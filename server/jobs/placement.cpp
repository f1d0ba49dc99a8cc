#include "server/jobs/placement.hpp"

#include <algorithm>

namespace cubind {
namespace {

using Version = std::pair<std::uint32_t, std::uint32_t>;

/// The version with which the agent would compile; absent: it cannot.
std::optional<Version> compiles_with(const AgentProfile& agent, const ToolchainNeed& need) {
  std::optional<Version> newest;
  for (const OfferedToolchain& toolchain : agent.toolchains) {
    if (compiles(toolchain, need)) {
      newest = std::max(newest, std::optional(Version{toolchain.major, toolchain.minor}));
    }
  }
  return newest;
}

bool may_measure_for(const AgentProfile& agent, const OfferedDevice& device, const OpenJob& job) {
  return device.device.digest == job.row.question.device_class && may_measure(device) &&
         may_tune(agent, job.needs);
}

}  // namespace

JobTargets Placement::targets(const OpenJob& job) const {
  const auto find = [&](bool avoided) {
    return measures(job.row) ? gpus(job, avoided) : compilers(job, avoided);
  };
  const JobTargets targets = find(false);
  return targets.any_exists ? targets : find(true);
}

JobTargets Placement::gpus(const OpenJob& job, bool avoided) const {
  const std::uint64_t needed = std::max(failures_.memory_needed(job.row.key), job.needs_bytes);
  JobTargets enough, less;
  for (const auto& [id, agent] : agents_) {
    if (agent.is_leaving || job.avoided.contains(agent.profile.key()) != avoided) {
      continue;
    }
    for (const OfferedDevice& device : agent.profile.devices) {
      if (!may_measure_for(agent.profile, device, job)) {
        continue;
      }
      const bool is_enough = device.trial_memory_bytes == 0 || device.trial_memory_bytes >= needed;
      JobTargets& targets = is_enough ? enough : less;
      targets.any_exists = true;
      const bool is_better =
          !targets.free || (lent_.is_lent(device.uuid) && !lent_.is_lent(targets.free->device->uuid));
      if (is_better && !leases_.holds_gpu(device.uuid)) {
        targets.free = JobTarget{id, &device};
      }
    }
  }
  return enough.any_exists ? enough : less;
}

JobTargets Placement::compilers(const OpenJob& job, bool avoided) const {
  const auto may_compile = [&](const JoinedAgent& agent) {
    return !agent.is_leaving && job.avoided.contains(agent.profile.key()) == avoided;
  };
  JobTargets targets;
  std::optional<Version> newest;
  for (const auto& [id, agent] : agents_) {
    newest = may_compile(agent) ? std::max(newest, compiles_with(agent.profile, job.needs)) : newest;
  }
  targets.any_exists = newest.has_value();
  for (const auto& [id, agent] : agents_) {
    // A cubin of an older toolchain would be compiled again for the next caller.
    if (!newest || !may_compile(agent) || compiles_with(agent.profile, job.needs) != newest) {
      continue;
    }
    if (!targets.free && leases_.compiles_of(id) < compile_limit_) {
      targets.free = JobTarget{id, nullptr};
    }
  }
  return targets;
}

bool Placement::waits_behind_foreign_use(const OpenJob& job) const {
  const auto waits_until_idle = [&](std::uint64_t agent, const OfferedDevice& device) {
    return std::ranges::any_of(leases_.held(), [&](const auto& leased) {
      const OpenJob& other = *leased.second;
      return other.lease->agent == agent && other.lease->gpu_uuid == device.uuid &&
             other.row.state == v1::Job::WAITING_FOR_IDLE_GPU;
    });
  };
  const auto is_free_soon = [&](std::uint64_t agent, const OfferedDevice& device) {
    return may_measure_for(agents_.at(agent).profile, device, job) && !waits_until_idle(agent, device);
  };
  return measures(job.row) && !any_device(agents_, is_free_soon);
}

bool Placement::should_move_to_lent_gpu(const OpenJob& job) const {
  if (job.row.state != v1::Job::WAITING_FOR_IDLE_GPU || lent_.is_lent(job.lease->gpu_uuid)) {
    return false;
  }
  const JobTargets found = targets(job);
  return found.free && lent_.is_lent(found.free->device->uuid);
}

bool Placement::another_is_free(const OpenJob& job) const {
  return any_device(agents_, [&](std::uint64_t agent, const OfferedDevice& device) {
    const JoinedAgent& joined = agents_.at(agent);
    return !joined.is_leaving && agent != job.lease->agent && !job.avoided.contains(joined.profile.key()) &&
           may_measure_for(joined.profile, device, job) && !leases_.holds_gpu(device.uuid);
  });
}

bool Placement::more_room_exists(const OpenJob& job, std::uint64_t bytes) const {
  return any_device(agents_, [&](std::uint64_t agent, const OfferedDevice& device) {
    return may_measure_for(agents_.at(agent).profile, device, job) &&
           !(job.lease && job.lease->gpu_uuid == device.uuid) && device.trial_memory_bytes >= bytes;
  });
}

std::optional<std::uint64_t> Placement::compiler_for(const ToolchainNeed& need) const {
  const auto found = std::ranges::find_if(agents_, [&](const auto& agent) {
    return !agent.second.is_leaving && compiles(agent.second.profile, need);
  });
  return found == agents_.end() ? std::nullopt : std::optional(found->first);
}

}  // namespace cubind
