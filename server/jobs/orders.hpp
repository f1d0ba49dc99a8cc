// Requests to the job queue.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/search.hpp"
#include "tuner/spec/device_class.hpp"
#include "tuner/spec/keys.hpp"

namespace cubind {

/// A job that compiles configurations but measures nothing.
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
  /// True if the problem represents its bucket: if it does not fit into the GPU's memory, the job measures a
  /// smaller one. False if the job must measure exactly this problem.
  bool for_bucket = false;
  /// Absent for a miss, which accepts any search; a new job gets the default budget.
  std::optional<SearchBudget> budget = {};
  /// If not empty, the record is measured again: only these and the default are tried, while no other process
  /// uses the GPU.
  std::vector<Configuration> listed = {};
  std::uint32_t rounds = 0;   // with `listed`: as in JobRow
  bool untrusted = false;     // as in a LeaseGrant
  bool from_scratch = false;  // as in JobRow; such a job has a separate key
  bool awaited = false;       // a caller waits for the job; see Scheduler::await
  std::string caller = {};    // the caller whose limits a new job counts against; empty: the daemon
};

}  // namespace cubind
