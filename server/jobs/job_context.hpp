// What the parts of the job queue work with: the daemon's store, index, kernels and clock, and the limits.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "base/clock.hpp"

namespace cubind {

class CallerLimits;
class Index;
class KernelLibrary;
class Store;

struct SchedulerOptions {
  std::chrono::milliseconds lease{15'000};
  /// A leased job that stores nothing new for this time goes to another agent. An agent may wait longer for
  /// an idle GPU if no other GPU is free.
  std::chrono::minutes longest_without_result{15};
  std::size_t queue_limit = 10'000;           // open jobs
  std::uint32_t interruption_limit = 10;      // in a row, with nothing stored in between, before a job fails
  std::uint32_t refusal_limit = 5;            // results that do not fit the job before it fails
  std::chrono::milliseconds retry_step{250};  // doubles with each interruption in a row, up to 30 s
  std::chrono::milliseconds idle_retry{
      10'000};  // how often a GPU in use is checked again for provisional records
  std::chrono::minutes failure_pause{10};
  std::uint32_t compile_leases = 4;  // at a time, per agent
  std::chrono::days job_memory{30};  // ended jobs older than this are forgotten
  std::uint32_t forget_after = 500;  // old jobs are forgotten each time that so many have ended
  CallerLimits* limits = nullptr;    // null: none
  /// Whether the kernel came from a user other than the daemon's. Empty: no kernel did.
  std::function<bool(const std::string& kernel)> is_foreign = {};
};

struct JobContext {
  Store& store;
  Index& index;
  KernelLibrary& kernels;
  const Clock& clock;
  SchedulerOptions options = {};
};

}  // namespace cubind
