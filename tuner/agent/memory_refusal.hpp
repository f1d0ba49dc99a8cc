#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "schemas/worker.pb.h"
#include "tuner/agent/job_input.hpp"

namespace cubind {

// What the trials of a problem take of the device's memory: all valid configurations, the reference and what
// the device worker needs beside them. Absent: no configuration is valid. Pure.
std::optional<std::uint64_t> needed_bytes(const JobInput& input, const Problem& problem);

// The result of a job whose problem the device has no memory for. A job for a bucket goes on with the first
// smaller problem of the bucket that fits (see fitting_problem()): SMALLER. Where none does, and for a job
// that measures exactly its problem: FAILED, with what the trials would need. Pure.
class MemoryRefusal {
 public:
  MemoryRefusal(const v1::LeaseGrant& lease, const JobInput& input, const v1::DeviceInfo& device);

  // Absent: the problem fits, or nobody knows, or the job is for exactly this problem: then the device is
  // asked.
  std::optional<v1::JobResult> foreseen() const;
  // The device has refused the problem, whatever was reckoned.
  v1::JobResult met(const std::string& error) const;

 private:
  v1::JobResult result(std::uint64_t need, std::uint64_t limit, const std::string& error) const;

  const JobInput& input_;
  const std::uint64_t limit_;  // what trials may use; 0: unknown
  const bool for_bucket_;
};

// What a job that was refused with so much allowed is to be repeated for: what it needs, and a sixteenth more
// than what was not enough, lest a few bytes that come free repeat it; yet no more than trials may ever use.
std::uint64_t worth_another_try(std::uint64_t needs, std::uint64_t allowed, std::uint64_t most);

}  // namespace cubind
