#include "server/jobs/job_times.hpp"

#include <algorithm>

namespace cubind {
namespace {

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  if (values.size() % 2 == 1) {
    return *middle;
  }
  return (*middle + *std::ranges::max_element(values.begin(), middle)) / 2;
}

}  // namespace

JobTimes::JobTimes(const std::vector<JobRow>& jobs) {
  for (const JobRow& job : jobs) {
    const bool counts =
        job.kind == v1::Job::TUNE && job.state == v1::Job::DONE && job.shown().configurations() > 0;
    if (!counts) {
      continue;
    }
    const double each_ms = job.shown().elapsed_ms() / job.shown().configurations();
    by_question_[job.key].push_back(each_ms);
    by_kernel_[{job.question.kernel, job.question.device_class}].push_back(each_ms);
  }
}

std::optional<TimeEstimate> JobTimes::estimate(const RecordQuestion& question,
                                               std::uint64_t configurations) const {
  const auto from = [&](const std::vector<double>& times) {
    return TimeEstimate{median(times) * static_cast<double>(configurations),
                        static_cast<std::uint32_t>(times.size())};
  };
  if (const auto own = by_question_.find(job_key(question)); own != by_question_.end()) {
    return from(own->second);
  }
  const auto kernel = by_kernel_.find({question.kernel, question.device_class});
  return kernel == by_kernel_.end() ? std::nullopt : std::optional(from(kernel->second));
}

}  // namespace cubind
