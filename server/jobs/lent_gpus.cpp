#include "server/jobs/lent_gpus.hpp"

#include <algorithm>
#include <utility>

namespace cubind {
namespace {

constexpr std::chrono::seconds kPatience{10};
constexpr std::chrono::seconds kImpatience{60};  // afterwards

bool offers(const JoinedAgent& agent, const std::string& gpu_uuid) {
  const auto& devices = agent.profile.devices;
  return std::ranges::find(devices, gpu_uuid, &OfferedDevice::uuid) != devices.end();
}

}  // namespace

std::uint64_t LentGpus::add(LentGpu lent) {
  const std::string uuid = lent.uuid;
  lends_.emplace(++last_, std::move(lent));
  tell_of(uuid);
  return last_;
}

void LentGpus::remove(std::uint64_t lend) {
  const auto found = lends_.find(lend);
  if (found == lends_.end()) {
    return;
  }
  const std::string uuid = found->second.uuid;
  lends_.erase(found);
  tell_of(uuid);
}

bool LentGpus::is_lent(const std::string& gpu_uuid) const {
  return std::ranges::any_of(lends_, [&](const auto& one) { return one.second.uuid == gpu_uuid; });
}

bool LentGpus::is_used_in_spite(const std::string& gpu_uuid, std::chrono::steady_clock::time_point now) {
  const auto since = in_use_since_.try_emplace(gpu_uuid, now).first;
  if (now - since->second > kPatience + kImpatience) {
    since->second = now;
  }
  return now - since->second >= kPatience;
}

void LentGpus::note_use(OpenJob& job, bool in_use_lent, std::chrono::steady_clock::time_point now) {
  const std::string& gpu = job.lease->gpu_uuid;
  job.in_use_lent = job.row.state == v1::Job::WAITING_FOR_IDLE_GPU && in_use_lent;
  job.waits_lent = job.in_use_lent && is_used_in_spite(gpu, now);
  if (job.row.state == v1::Job::RUNNING) {
    in_use_since_.erase(gpu);  // it is ours
  }
}

std::vector<OpenJob*> LentGpus::vain_waits(const Leases& leases, std::chrono::steady_clock::time_point now) {
  std::vector<OpenJob*> waits =
      leases.where([](const OpenJob& job) { return job.in_use_lent && !job.waits_lent; });
  std::erase_if(waits, [&](OpenJob* job) {
    note_use(*job, true, now);
    return !job->waits_lent;
  });
  return waits;
}

bool LentGpus::serves(std::uint64_t lend, const Digest& device_class) const {
  const auto found = lends_.find(lend);
  return found != lends_.end() && any_device(agents_, [&](std::uint64_t, const OfferedDevice& device) {
           return device.uuid == found->second.uuid && device.device.digest == device_class &&
                  may_measure(device);
         });
}

void LentGpus::tell(const JoinedAgent& agent) const {
  std::vector<LentGpu> lent;
  for (const auto& [id, one] : lends_) {
    if (offers(agent, one.uuid)) {
      lent.push_back(one);
    }
  }
  agent.link->lends(lent);
}

void LentGpus::tell_of(const std::string& gpu_uuid) const {
  for (const auto& [id, agent] : agents_) {
    if (offers(agent, gpu_uuid)) {
      tell(agent);
    }
  }
}

}  // namespace cubind
