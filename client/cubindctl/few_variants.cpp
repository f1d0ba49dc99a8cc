#include "client/cubindctl/few_variants.hpp"

#include <algorithm>
#include <optional>
#include <set>

namespace cubind::ctl {
namespace {

constexpr std::size_t kMaxSteps = 100'000;

// Looks for a set within a bound: it branches over the configurations that are within the bound at the
// first problem that is not served, and problems with few of them come first.
class Cover {
 public:
  Cover(const std::vector<ProblemRegrets>& problems, double bound) {
    for (const ProblemRegrets& problem : problems) {
      if (problem.of_default > bound) {
        choices_.push_back(choices_of(problem.configurations, bound));
      }
    }
    std::ranges::sort(choices_, {}, &std::vector<std::size_t>::size);
  }

  std::optional<std::vector<std::size_t>> find(std::size_t size) {
    return extend(size, 0) ? std::optional(chosen_) : std::nullopt;
  }

 private:
  // The problems before `first` are served.
  bool extend(std::size_t size, std::size_t first) {
    while (first < choices_.size() && is_served(choices_[first])) {
      ++first;
    }
    if (first == choices_.size()) {
      return true;
    }
    if (chosen_.size() == size || ++steps_ > kMaxSteps) {
      return false;
    }
    return std::ranges::any_of(choices_[first], [&](std::size_t one) {
      chosen_.push_back(one);
      if (extend(size, first + 1)) {
        return true;
      }
      chosen_.pop_back();
      return false;
    });
  }

  bool is_served(const std::vector<std::size_t>& choices) const {
    return std::ranges::any_of(chosen_,
                               [&](std::size_t one) { return std::ranges::binary_search(choices, one); });
  }

  static std::vector<std::size_t> choices_of(const std::vector<double>& regrets, double bound) {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < regrets.size(); ++i) {
      if (regrets[i] <= bound) {
        found.push_back(i);
      }
    }
    return found;
  }

  std::vector<std::vector<std::size_t>> choices_;  // of each problem that its default does not serve
  std::vector<std::size_t> chosen_;
  std::size_t steps_ = 0;
};

VariantSet described(std::vector<std::size_t> configurations, const std::vector<ProblemRegrets>& problems) {
  std::ranges::sort(configurations);
  VariantSet set{std::move(configurations), {}, 0, 0};
  for (const ProblemRegrets& problem : problems) {
    double least = problem.of_default;
    std::optional<std::size_t>& serves = set.serves.emplace_back();
    for (const std::size_t one : set.configurations) {
      if (problem.configurations[one] < least) {
        least = problem.configurations[one];
        serves = one;
      }
    }
    set.worst = std::max(set.worst, least);
    set.mean += least / static_cast<double>(problems.size());
  }
  return set;
}

std::vector<double> bounds_of(const std::vector<ProblemRegrets>& problems) {
  std::set<double> all;
  for (const ProblemRegrets& problem : problems) {
    all.insert(problem.configurations.begin(), problem.configurations.end());
    all.insert(problem.of_default);
  }
  return {all.begin(), all.end()};
}

}  // namespace

std::vector<VariantSet> best_sets(const std::vector<ProblemRegrets>& problems, std::size_t most) {
  const std::vector<double> bounds = bounds_of(problems);
  std::vector<VariantSet> sets{described({}, problems)};
  while (sets.back().worst > 0 && sets.size() <= most) {
    std::vector<std::size_t> best = sets.back().configurations;
    auto low = bounds.begin(), high = std::ranges::lower_bound(bounds, sets.back().worst);
    while (low < high) {  // the least bound that some set keeps to
      const auto middle = low + (high - low) / 2;
      if (auto found = Cover(problems, *middle).find(sets.size())) {
        best = std::move(*found);
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    sets.push_back(described(std::move(best), problems));
  }
  return sets;
}

}  // namespace cubind::ctl
