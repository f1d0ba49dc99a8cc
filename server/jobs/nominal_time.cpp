#include "server/jobs/nominal_time.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace cubind {
namespace {

// Of a data center's GPU, by their order of magnitude: their ratio decides which of the two counts.
constexpr double kBytesPerSecond = 3e12;
constexpr double kOperationsPerSecond = 5e14;

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

}  // namespace cubind
