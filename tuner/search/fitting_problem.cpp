#include "tuner/search/fitting_problem.hpp"

#include <vector>

namespace cubind {

std::optional<Problem> fitting_problem(const KernelSpec& spec, const Problem& problem,
                                       const std::function<bool(const Problem&)>& fits) {
  const std::vector<BucketRule::Interval> bucket = spec.bucket(problem);
  Problem smaller = problem;
  for (bool stepped = true; stepped;) {
    stepped = false;
    for (std::size_t dim = 0; dim < bucket.size(); ++dim) {
      const std::int64_t edge = bucket[dim].lower - 1;
      std::int64_t& value = smaller.dims[dim].value;
      const std::int64_t above = (value - edge) / 2;
      if (above < 1) {
        continue;
      }
      value = edge + above;
      stepped = true;
      if (fits(smaller)) {
        return smaller;
      }
    }
  }
  return std::nullopt;
}

}  // namespace cubind
