#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "schemas/worker.pb.h"
#include "tuner/agent/tuning/job_input.hpp"

namespace cubind {

/// The device memory that the trials of a problem take: the default configuration, the reference and what the
/// device worker needs in addition. A configuration with more scratch may lack memory by itself. Absent: no
/// configuration is valid. Pure.
std::optional<std::uint64_t> needed_bytes(const JobInput& input, const Problem& problem);

/// The result of a job whose problem the device has no memory for. A job for a bucket goes on with the first
/// smaller problem of the bucket that fits (see fitting_problem()): SMALLER. If none does, and for a job that
/// measures exactly its problem: FAILED, with the memory that the trials would need. Pure.
class MemoryRefusal {
 public:
  MemoryRefusal(const v1::LeaseGrant& lease, const JobInput& input, const v1::DeviceInfo& device);

  /// Absent: the problem fits, or that is unknown, or the job is for exactly this problem: then the device is
  /// asked.
  std::optional<v1::JobResult> foreseen() const;
  /// The device has refused the problem, in spite of the estimate.
  v1::JobResult met(const std::string& error) const;

 private:
  v1::JobResult result(std::uint64_t need, std::uint64_t limit, const std::string& error) const;

  const JobInput& input_;
  const std::uint64_t limit_;  // the memory that trials may use; 0: unknown
  const bool for_bucket_;
};

/// The free memory that a refused job waits for: its need, if that was more than allowed. If it was not, free
/// memory does not explain the failure (a context took some, or another process that is gone): 0, and the job
/// waits like any failed one.
std::uint64_t memory_to_wait_for(std::uint64_t needs, std::uint64_t allowed);

}  // namespace cubind
