// How an agent ends: it has had no work for long, or was asked to.
#include <chrono>
#include <thread>

#include "base/log.hpp"
#include "tuner/agent/lease/agent_work.hpp"

namespace cubind {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// The trial under way has this long to end.
constexpr milliseconds kUnderWay{2000};
// Then the job is stopped and has this long to send what it has; what has not ended then is dropped.
constexpr milliseconds kHandBack{3000};

}  // namespace

bool Agent::is_idle_for_long() {
  const auto now = steady_clock::now();
  if (has_work()) {
    busy_ = now;
  }
  if (!options_.exit_when_idle || now - busy_ < *options_.exit_when_idle) {
    return false;
  }
  log_info("no work for " + std::to_string(*options_.exit_when_idle / std::chrono::seconds(1)) + " s");
  return true;
}

void Agent::hand_back() {
  log_info("ending: leases are handed back");
  {
    const std::lock_guard lock(mutex_);
    draining_ = true;
  }
  say_it_leaves();
  for (const auto& work : works()) {
    work->stop.end_after_trial();
  }
  wait_for_works(kUnderWay);
  ending_.request_stop();
  stop_all(JobStop::Kind::HandBack);
  wait_for_works(kHandBack);
  stop_all(JobStop::Kind::Drop);
}

void Agent::wait_for_works(milliseconds time) {
  const auto until = steady_clock::now() + time;
  while (steady_clock::now() < until && has_work()) {
    std::this_thread::sleep_for(milliseconds(10));
    reap(false);
  }
}

// So that the daemon does not lease to it what it hands back.
void Agent::say_it_leaves() {
  if (heartbeat_.load().count() == 0) {
    return;  // it is not welcomed yet: no other thread than the stream's reader writes
  }
  v1::AgentMessage message;
  message.mutable_leaving();
  stream_->send(message);
}

}  // namespace cubind
