#include "tuner/agent/lease/job_stop.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace cubind {
namespace {

[[noreturn]] void hand_back() {
  throw Error(ErrorCode::Cancelled, "job", "handed back: the agent is draining");
}

}  // namespace

void JobStop::request(Kind kind) {
  const std::lock_guard lock(mutex_);
  kind_ = std::max(kind_, kind);
  if (kind_ == Kind::None) {
    return;
  }
  for (const auto& [id, hook] : hooks_) {
    hook();
  }
  changed_.notify_all();
}

JobStop::Kind JobStop::kind() const {
  const std::lock_guard lock(mutex_);
  return kind_;
}

void JobStop::end_after_trial() {
  const std::lock_guard lock(mutex_);
  ends_after_trial_ = woken_ = true;
  changed_.notify_all();
}

void JobStop::check_between_trials() const {
  check();
  const std::lock_guard lock(mutex_);
  if (ends_after_trial_) {
    hand_back();
  }
}

void JobStop::check() const {
  switch (kind()) {
    case Kind::None:
      return;
    case Kind::HandBack:
      hand_back();
    case Kind::Drop:
      throw Error(ErrorCode::Aborted, "job", "the lease is over");
  }
}

bool JobStop::wait_for(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, time, [this] { return kind_ != Kind::None || woken_; });
  woken_ = false;
  return kind_ != Kind::None;
}

void JobStop::wake() {
  const std::lock_guard lock(mutex_);
  woken_ = true;
  changed_.notify_all();
}

JobStop::Hook::Hook(JobStop& stop, std::function<void()> hook) : stop_(stop) {
  const std::lock_guard lock(stop_.mutex_);
  if (stop_.kind_ != Kind::None) {
    hook();
  }
  id_ = stop_.next_id_++;
  stop_.hooks_.emplace(id_, std::move(hook));
}

JobStop::Hook::~Hook() {
  const std::lock_guard lock(stop_.mutex_);
  stop_.hooks_.erase(id_);
}

}  // namespace cubind
