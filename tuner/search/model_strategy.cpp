#include "tuner/search/model_strategy.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <optional>
#include <unordered_set>
#include <utility>

#include "tuner/search/gaussian_process.hpp"
#include "tuner/search/tried.hpp"

namespace cubind {
namespace {

constexpr std::size_t kLeastKnown = 2;           // times that a model needs
constexpr std::size_t kLeastWeighed = 4;         // times by which a kernel is found once for several trials
constexpr std::size_t kTrialsKept = 4;           // for so many more a kernel is kept: it is dear
constexpr std::uint64_t kMostScanned = 100'000;  // numbers looked at for one that was not tried

// The configuration of each tunable's middle value; if it is not valid, the nearest of some draws. Absent if
// nothing is valid.
std::optional<std::uint64_t> middle_of(const ConfigurationSpace& space, std::uint64_t seed,
                                       std::size_t draws) {
  Point middle;
  for (const Axis& axis : space.axes()) {
    middle.push_back(static_cast<std::uint32_t>(axis.values.size() / 2));
  }
  std::optional<std::uint64_t> nearest = space.number(middle);
  double least = std::numeric_limits<double>::infinity();
  Random random(seed);
  for (std::size_t draw = nearest ? draws : 0; draw < draws; ++draw) {
    const std::optional<std::uint64_t> number = space.sample(random);
    if (!number) {
      break;
    }
    const Point point = space.point(*number);
    double squares = 0;
    for (std::size_t axis = 0; axis < point.size(); ++axis) {
      const double off = static_cast<double>(point[axis]) - middle[axis];
      const auto length = static_cast<double>(space.axes()[axis].values.size());
      squares += off * off / (length * length);
    }
    if (squares < least) {
      least = squares;
      nearest = number;
    }
  }
  return nearest;
}

// Each once.
std::vector<std::uint64_t> with_middle(std::vector<std::uint64_t> first, const ConfigurationSpace& space,
                                       std::uint64_t seed, std::size_t draws) {
  if (const auto middle = middle_of(space, seed, draws)) {
    first.push_back(*middle);
  }
  std::unordered_set<std::uint64_t> met;
  std::erase_if(first, [&](std::uint64_t number) { return !met.insert(number).second; });
  return first;
}

// How much more than `goal` is expected of what is estimated so.
double expected_improvement(const Estimate& estimate, double goal) {
  const double deviation = estimate.deviation + 1e-9;
  const double z = (estimate.mean - goal) / deviation;
  if (z < -6) {
    return 1e-13 / (z * z);  // still an order, where the formula loses all digits
  }
  const double density = std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
  return deviation * (z * std::erfc(-z / std::numbers::sqrt2) / 2 + density);
}

}  // namespace

// One call of propose().
class Proposal {
 public:
  Proposal(ModelStrategy& strategy, std::span<const Observation> history)
      : strategy_(strategy),
        space_(strategy.space_),
        history_(history),
        tried_(history),
        random_(strategy.seed_ + 0x9e3779b97f4a7c15 * (history.size() + 1)),
        known_(known_of(history)) {
    for (const Observation& observation : history) {
      failures_ = failures_ || observation.outcome != Outcome::Correct;
    }
  }

  std::vector<std::uint64_t> run(std::size_t count) && {
    while (proposed_.size() < count) {
      std::optional<std::uint64_t> next = first();
      const std::size_t trials = history_.size() + proposed_.size();
      if (!next && trials >= strategy_.settings_.initial && known_.size() >= kLeastKnown) {
        next = by_turns(trials);
      }
      if (!next) {
        next = drawn();
      }
      if (!next) {
        break;
      }
      tried_.add(*next);
      proposed_.push_back(*next);
    }
    return std::move(proposed_);
  }

 private:
  struct Known {
    std::uint64_t number;
    double time_us;
  };
  struct Candidate {
    std::uint64_t number;
    Point point;
    double feasible = 1;  // the chance that it does not fail
  };
  using Features = std::vector<double>;

  // Fastest first.
  static std::vector<Known> known_of(std::span<const Observation> history) {
    std::vector<Known> known;
    for (const Observation& observation : history) {
      if (observation.outcome == Outcome::Correct && observation.time_us) {
        known.push_back({observation.number, *observation.time_us});
      }
    }
    std::ranges::stable_sort(known, {}, &Known::time_us);
    return known;
  }

  // ---- Without a model ----

  std::optional<std::uint64_t> first() {
    for (const std::uint64_t number : strategy_.first_) {
      if (!tried_.contains(number)) {
        return number;
      }
    }
    return std::nullopt;
  }

  // Uniformly from those that were not tried, as long as a few draws find one; then the next one
  // behind a draw.
  std::optional<std::uint64_t> drawn() {
    std::optional<std::uint64_t> number;
    for (int draw = 0; draw < 100; ++draw) {
      number = space_.sample(random_);
      if (!number || !tried_.contains(*number)) {
        return number;
      }
    }
    for (std::uint64_t step = 1; step < std::min(space_.size(), kMostScanned); ++step) {
      const std::uint64_t other = (*number + step) % space_.size();
      if (!tried_.contains(other) && space_.valid(other)) {
        return other;
      }
    }
    return std::nullopt;
  }

  // ---- By models ----

  std::optional<std::uint64_t> by_turns(std::size_t trials) {
    const ModelSettings& settings = strategy_.settings_;
    const bool bold = trials < settings.bold;
    const bool warm = settings.warm && trials < settings.careful;
    const double margin = bold && !warm ? settings.margins[trials / 2 % settings.margins.size()] : 0;
    if (trials % (bold ? settings.trees_every : 2) == 1) {
      return by_trees(margin, bold ? settings.trees_doubt : 1);
    }
    return by_process(margin);
  }

  std::optional<std::uint64_t> by_trees(double margin, double doubt) {
    const std::vector<Candidate>& candidates = this->candidates();
    if (!trees_) {
      std::vector<Features> features;
      std::vector<double> shares;
      for (const Known& known : known_) {
        features.push_back(strategy_.coordinates_.logarithms(space_.point(known.number)));
        shares.push_back(known_.front().time_us / known.time_us);
      }
      trees_.emplace(features, shares, random_, strategy_.settings_.trees);
    }
    return best_of(candidates, 1 + margin, [&](const Candidate& candidate) {
      Estimate estimate = trees_->estimate(strategy_.coordinates_.logarithms(candidate.point));
      estimate.deviation *= doubt;
      return estimate;
    });
  }

  std::optional<std::uint64_t> by_process(double margin) {
    const std::vector<Candidate>& candidates = this->candidates();
    if (!process_) {
      const auto fastest = first_of(known_, strategy_.settings_.process_points);
      process_.emplace(points(fastest), logarithms(fastest), kernel());
      for (const Observation& observation : history_) {
        if (under_way(observation)) {
          process_->expect(space_.point(observation.number));
        }
      }
    }
    for (; expected_ < proposed_.size(); ++expected_) {
      process_->expect(space_.point(proposed_[expected_]));
    }
    return best_of(candidates, margin,
                   [&](const Candidate& candidate) { return process_->estimate(candidate.point); });
  }

  static bool under_way(const Observation& observation) {
    return observation.outcome == Outcome::Correct && !observation.time_us;
  }

  // Depends on the finished trials up to a multiple of some: a job that is resumed finds the same.
  AdditiveKernel kernel() {
    const auto over = static_cast<std::size_t>(std::ranges::find_if(history_, under_way) - history_.begin());
    const std::size_t trials = over - over % kTrialsKept;
    const std::vector<Known> earlier = known_of(history_.first(trials));
    if (earlier.size() < kLeastWeighed) {
      return kernel_by(known_);
    }
    auto& kept = strategy_.kept_;
    if (!kept || kept->trials != trials) {
      kept = {trials, kernel_by(earlier)};
    }
    return kept->kernel;
  }

  AdditiveKernel kernel_by(std::span<const Known> known) const {
    const auto fastest = first_of(known, strategy_.settings_.kernel_points);
    return AdditiveKernel::likeliest(strategy_.coordinates_, points(fastest), logarithms(fastest));
  }

  std::vector<Point> points(std::span<const Known> known) const {
    std::vector<Point> result;
    for (const Known& one : known) {
      result.push_back(space_.point(one.number));
    }
    return result;
  }

  static std::span<const Known> first_of(std::span<const Known> known, std::size_t most) {
    return known.first(std::min(known.size(), most));
  }

  // Logarithms of the shares of what the first one reaches.
  static std::vector<double> logarithms(std::span<const Known> known) {
    std::vector<double> result;
    for (const Known& one : known) {
      result.push_back(std::log(known.front().time_us / one.time_us));
    }
    return result;
  }

  // `goal`: above which there is an improvement, as `estimate` counts it.
  template <typename Model>
  std::optional<std::uint64_t> best_of(const std::vector<Candidate>& candidates, double goal,
                                       const Model& estimate) const {
    std::optional<std::uint64_t> best;
    double most = -1;
    for (const Candidate& candidate : candidates) {
      if (tried_.contains(candidate.number)) {
        continue;
      }
      const double worth = candidate.feasible * expected_improvement(estimate(candidate), goal);
      if (worth > most) {
        most = worth;
        best = candidate.number;
      }
    }
    return best;
  }

  // Drawn from the whole space, and the neighbours of the fastest. The same for all that one call proposes.
  const std::vector<Candidate>& candidates() {
    if (!candidates_.empty()) {
      return candidates_;
    }
    std::unordered_set<std::uint64_t> met;
    const auto add = [&](std::uint64_t number) {
      if (!tried_.contains(number) && met.insert(number).second) {
        candidates_.push_back({number, space_.point(number)});
      }
    };
    for (std::size_t i = 0; i < strategy_.settings_.drawn; ++i) {
      if (const auto number = space_.sample(random_)) {
        add(*number);
      }
    }
    for (std::size_t i = 0; i < std::min(strategy_.settings_.elite, known_.size()); ++i) {
      for (const auto number : space_.neighbours(known_[i].number)) {
        add(number);
      }
    }
    if (failures_) {
      judge_feasibility();
    }
    return candidates_;
  }

  void judge_feasibility() {
    std::vector<Features> inputs;
    std::vector<double> worked;
    for (const Observation& observation : history_) {
      inputs.push_back(strategy_.coordinates_.logarithms(space_.point(observation.number)));
      worked.push_back(observation.outcome == Outcome::Correct ? 1 : 0);
    }
    const ExtraTrees trees(inputs, worked, random_, strategy_.settings_.trees);
    for (Candidate& candidate : candidates_) {
      candidate.feasible = trees.estimate(strategy_.coordinates_.logarithms(candidate.point)).mean;
    }
  }

  ModelStrategy& strategy_;
  const ConfigurationSpace& space_;
  std::span<const Observation> history_;
  Tried tried_;
  Random random_;
  std::vector<Known> known_;  // fastest first
  bool failures_ = false;
  std::vector<Candidate> candidates_;
  std::optional<ExtraTrees> trees_;
  std::optional<GaussianProcess> process_;
  std::vector<std::uint64_t> proposed_;
  std::size_t expected_ = 0;  // of these by the process
};

ModelStrategy::ModelStrategy(const ConfigurationSpace& space, std::vector<std::uint64_t> first,
                             std::uint64_t seed, ModelSettings settings)
    : space_(space),
      coordinates_(space.axes()),
      first_(with_middle(std::move(first), space, seed, settings.drawn)),
      seed_(seed),
      settings_(settings) {}

std::vector<std::uint64_t> ModelStrategy::propose(std::span<const Observation> history, std::size_t count) {
  return Proposal(*this, history).run(count);
}

}  // namespace cubind
