#include "server/jobs/nominal_time.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace cubind {
namespace {

// Of a data center's GPU, by their order of magnitude: their ratio decides which of the two counts.
constexpr double kBytesPerSecond = 3e12;
constexpr double kOperationsPerSecond = 5e14;
// Fitted to the jobs of 40 RMSNorm problems on an H200 (bench/shape_list).
constexpr double kLaunchesOfJob = 1800;
// Finalists that take less, nominally, are compared in more rounds of more samples (MeasureSettings).
constexpr double kShortSeconds = 16e-6, kFinalsOfShort = 0.4;

}  // namespace

double nominal_seconds(const KernelSpec& spec, const Problem& problem) {
  try {
    const WorkSizes work = spec.work_sizes(problem);
    return std::max(static_cast<double>(work.bytes.value_or(0)) / kBytesPerSecond,
                    static_cast<double>(work.flops.value_or(0)) / kOperationsPerSecond);
  } catch (const Error&) {
    return 0;  // the job says what is wrong with the expression
  }
}

double nominal_job_seconds(const KernelSpec& spec, const Problem& problem) {
  const double launch = nominal_seconds(spec, problem);
  return kLaunchesOfJob * launch + (launch < kShortSeconds ? kFinalsOfShort : 0);
}

}  // namespace cubind
