#include "tuner/search/tails.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "plan/expr/expression.hpp"

namespace cubind {
namespace {

// The number of sizes to try for one that fits; constraints such as N % 64 == 0 leave one in 64.
constexpr std::int64_t kMaxSteps = 4096;

Problem with_dim(Problem problem, std::size_t dim, std::int64_t value) {
  problem.dims[dim].value = value;
  return problem;
}

// The values above 1 of the tunables that occur with the dim in a grid expression.
std::vector<std::int64_t> grid_tunables(const PlanTemplate& plan, std::string_view dim,
                                        const Configuration& configuration) {
  std::vector<std::int64_t> result;
  for (const LaunchTemplate& launch : plan.launches) {
    for (const std::string& text : launch.grid) {
      const Expression expression = Expression::parse(text);
      const std::vector<std::string>& names = expression.variables();
      if (std::ranges::find(names, dim) == names.end()) {
        continue;
      }
      for (const std::string& name : names) {
        const auto value = configuration.value(name);
        if (value && *value > 1) {
          result.push_back(*value);
        }
      }
    }
  }
  return result;
}

class TailSearch {
 public:
  TailSearch(const Problem& measured, std::size_t dim, BucketRule::Interval interval,
             const std::function<bool(const Problem&)>& usable)
      : measured_(measured), dim_(dim), interval_(interval), usable_(usable) {}

  // The first size from `start` by `step` within the bucket that is wanted and usable.
  void add(std::int64_t start, std::int64_t step, const std::function<bool(std::int64_t)>& wanted,
           std::vector<Problem>& out) const {
    std::int64_t value = start;
    for (std::int64_t i = 0; i < kMaxSteps && value >= interval_.lower && value <= interval_.upper;
         ++i, value += step) {
      if (!wanted(value)) {
        continue;
      }
      const Problem problem = with_dim(measured_, dim_, value);
      if (problem == measured_ || std::ranges::find(out, problem) != out.end()) {
        continue;
      }
      if (!usable_(problem)) {
        continue;
      }
      out.push_back(problem);
      return;
    }
  }

 private:
  const Problem& measured_;
  std::size_t dim_;
  BucketRule::Interval interval_;
  const std::function<bool(const Problem&)>& usable_;
};

}  // namespace

bool is_prime(std::int64_t value) {
  if (value < 4) {
    return value >= 2;
  }
  if (value % 2 == 0) {
    return false;
  }
  for (std::int64_t divisor = 3; divisor <= value / divisor; divisor += 2) {
    if (value % divisor == 0) {
      return false;
    }
  }
  return true;
}

std::vector<Problem> tail_problems(const KernelSpec& spec, const Problem& measured,
                                   const Configuration& configuration,
                                   const std::function<bool(const Problem&)>& usable) {
  std::vector<Problem> result;
  const std::vector<BucketRule::Interval> bucket = spec.bucket(measured);
  const PlanTemplate plan = spec.plan_template(measured, configuration);
  for (std::size_t dim = 0; dim < bucket.size(); ++dim) {
    const BucketRule::Interval interval = bucket[dim];
    if (interval.lower >= interval.upper) {
      continue;
    }
    const TailSearch search(measured, dim, interval, usable);
    search.add(
        interval.lower, 1, [](std::int64_t) { return true; }, result);
    const auto middle = static_cast<std::int64_t>(
        std::sqrt(static_cast<double>(interval.lower) * static_cast<double>(interval.upper)));
    search.add(std::max(middle, interval.lower + 1), 1, is_prime, result);
    const auto tunables = grid_tunables(plan, measured.dims[dim].name, configuration);
    if (tunables.empty()) {
      continue;
    }
    search.add(
        interval.upper - 1, -1,
        [&](std::int64_t size) {
          return std::ranges::none_of(tunables, [&](std::int64_t t) { return size % t == 0; });
        },
        result);
  }
  return result;
}

}  // namespace cubind
