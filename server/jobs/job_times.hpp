// The duration of tuning, estimated from ended jobs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/store/rows.hpp"

namespace cubind {

/// The estimated duration of a job.
struct TimeEstimate {
  double elapsed_ms = 0;
  std::uint32_t jobs = 0;  // that the estimate uses
};

/// Estimates a job as the median time per configuration times the number of configurations. The median is
/// over the question's earlier jobs, or if there are none over all jobs of its kernel on its device class.
/// Only jobs with a winner count.
class JobTimes {
 public:
  explicit JobTimes(const std::vector<JobRow>& jobs);

  /// Absent if there is no such job.
  std::optional<TimeEstimate> estimate(const RecordQuestion& question, std::uint64_t configurations) const;

 private:
  /// Milliseconds per configuration, for each job.
  std::map<Digest, std::vector<double>> by_question_;                        // job_key()
  std::map<std::pair<std::string, Digest>, std::vector<double>> by_kernel_;  // and device class
};

}  // namespace cubind
