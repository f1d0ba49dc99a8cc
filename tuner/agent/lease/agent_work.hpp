#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "tuner/agent/lease/agent.hpp"
#include "tuner/agent/lease/job_stop.hpp"
#include "tuner/agent/lease/lease_channel.hpp"

namespace cubind {

/// One lease or check that is being worked on.
struct Agent::Work {
  JobStop stop;
  std::unique_ptr<LeaseChannel> channel;  // none for a check
  std::chrono::milliseconds heartbeat{1000};
  std::chrono::steady_clock::time_point last_sent{};
  std::string lease_id;  // or the check's id
  std::string gpu_uuid;  // of a tuning job
  std::atomic<bool> wants_gpu{true};
  std::atomic<bool> done{false};
  std::thread thread;
};

}  // namespace cubind
