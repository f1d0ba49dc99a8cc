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

/// How long a job will take.
struct TimeEstimate {
  double elapsed_ms = 0;
  std::uint32_t jobs = 0;  // that it rests on
};

/// The median time for a configuration times their number: from the question's own jobs, if it was tuned
/// before, else from all jobs of its kernel on its device class. Only jobs with a winner count.
class JobTimes {
 public:
  explicit JobTimes(const std::vector<JobRow>& jobs);

  /// Absent: no such job.
  std::optional<TimeEstimate> estimate(const RecordQuestion& question, std::uint64_t configurations) const;

 private:
  /// Milliseconds for a configuration, of each job.
  std::map<Digest, std::vector<double>> by_question_;                        // job_key()
  std::map<std::pair<std::string, Digest>, std::vector<double>> by_kernel_;  // and device class
};

}  // namespace cubind
