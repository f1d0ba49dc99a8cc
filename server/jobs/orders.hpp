// What the job queue is asked to do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tuner/plan/search.hpp"
#include "tuner/spec/device_class.hpp"
#include "tuner/spec/keys.hpp"

namespace cubind {

/// A job that compiles configurations and measures nothing.
struct CompileOrder {
  RecordQuestion question;
  DeviceClass device;
  Digest key;  // single-flight: of source, configuration, architecture and driver
  std::vector<Configuration> configurations;
  std::string architecture;
  std::uint32_t driver_cuda = 0;
};

/// A job that measures.
struct TuneOrder {
  RecordQuestion question;
  DeviceClass device;
  /// The problem represents its bucket: if it does not fit into the GPU's memory, the job measures a smaller
  /// one that does. Otherwise the job measures exactly this problem.
  bool for_bucket = false;
  /// Absent: a miss, which takes any search; a new job gets the default budget.
  std::optional<SearchBudget> budget = {};
  /// The record is measured again: nothing but these and the default is tried, while no other process uses
  /// the GPU.
  std::vector<Configuration> listed = {};
  std::uint32_t rounds = 0;   // with `listed`: as in JobRow
  bool from_scratch = false;  // as in JobRow; such a job has a key of its own
  bool awaited = false;       // a caller waits for the job; see Scheduler::await
  std::string caller = {};    // whose limits a new job counts in; empty: the daemon's own work
};

}  // namespace cubind
