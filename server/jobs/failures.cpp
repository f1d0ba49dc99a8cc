#include "server/jobs/failures.hpp"

#include "base/error.hpp"
#include "server/kernel_library.hpp"

namespace cubind {

void Failures::note(const JobRow& ended) {
  const auto now = clock_.steady_now();
  std::erase_if(failures_, [&](const auto& item) {
    return item.first == ended.key || (item.second.needs_bytes == 0 && item.second.until <= now);
  });
  if (ended.state == v1::Job::FAILED) {
    failures_[ended.key] = {ended.shown().error(),       now + pause_,
                            ended.question.kernel,       revision_of(ended.question.kernel),
                            ended.question.device_class, ended.fact.for_bucket(),
                            ended.fact.needs_bytes()};
  }
}

std::optional<std::string> Failures::find(const Digest& key, bool for_bucket) const {
  const Failure* failure = latest(key);
  if (!failure) {
    return std::nullopt;
  }
  const bool out_of_memory = failure->needs_bytes > 0;
  if (out_of_memory && for_bucket && !failure->for_bucket) {
    return std::nullopt;
  }
  const bool over = out_of_memory ? may_fit(*failure) : failure->until <= clock_.steady_now();
  return over ? std::nullopt : std::optional(failure->error);
}

std::uint64_t Failures::memory_needed(const Digest& key) const {
  const Failure* failure = latest(key);
  return failure ? failure->needs_bytes : 0;
}

const Failures::Failure* Failures::latest(const Digest& key) const {
  const auto found = failures_.find(key);
  return found != failures_.end() && found->second.revision == revision_of(found->second.kernel)
             ? &found->second
             : nullptr;
}

// An agent that cannot tell the free memory (no NVML) is tried again after the pause.
bool Failures::may_fit(const Failure& failure) const {
  return any_device(agents_, [&](std::uint64_t, const OfferedDevice& device) {
    return device.device.digest == failure.device_class &&
           (device.trial_memory_bytes == 0 ? failure.until <= clock_.steady_now()
                                           : device.trial_memory_bytes >= failure.needs_bytes);
  });
}

std::uint64_t Failures::revision_of(const std::string& kernel) const {
  try {
    return kernels_.find(kernel)->revision;
  } catch (const Error&) {
    return 0;
  }
}

}  // namespace cubind
