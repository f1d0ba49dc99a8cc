#include "tuner/search/model_strategy.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
#include <unordered_set>
#include <utility>

#include "tuner/search/gaussian_process.hpp"
#include "tuner/search/tried.hpp"

namespace cubind {
namespace {

constexpr std::size_t kLeastKnown = 2;           // times that a model needs
                                                 // trials after which the length scale is chosen anew
constexpr std::uint64_t kMostScanned = 100'000;  // numbers looked at for one that was not tried

constexpr std::size_t kMostSteps = 60;  // tried for one that leads to what was not

// How much more than `best` is expected of what is estimated so.
double expected_improvement(const Estimate& estimate, double best) {
  const double deviation = estimate.deviation + 1e-9;
  const double z = (estimate.mean - best) / deviation;
  if (z < -6) {
    return 1e-12 * std::exp(z);  // still an order, where the formula loses all digits
  }
  const double density = std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
  return deviation * (z * std::erfc(-z / std::numbers::sqrt2) / 2 + density);
}

}  // namespace

// One call of propose().
class Proposal {
 public:
  Proposal(const ModelStrategy& strategy, std::span<const Observation> history)
      : strategy_(strategy),
        space_(strategy.space_),
        history_(history),
        tried_(history),
        random_(strategy.seed_ + 0x9e3779b97f4a7c15 * (history.size() + 1)) {
    for (const Observation& observation : history) {
      if (observation.outcome != Outcome::Correct) {
        failures_ = true;
      } else if (observation.time_us) {
        known_.push_back({observation.number, *observation.time_us});
      }
    }
    std::stable_sort(known_.begin(), known_.end(),
                     [](const Known& a, const Known& b) { return a.time_us < b.time_us; });
  }

  std::vector<std::uint64_t> run(std::size_t count) && {
    while (proposed_.size() < count) {
      std::optional<std::uint64_t> next = first();
      const std::size_t trials = history_.size() + proposed_.size();
      if (!next && trials >= strategy_.settings_.initial && known_.size() >= kLeastKnown) {
        next = by_turn(trials);
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

  std::optional<std::uint64_t> by_turn(std::size_t trials) {
    switch (trials % 3) {
      case 0:
        return by_process();
      case 2:
        return nearby();
      default:
        return by_trees();
    }
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

  // Uniformly from those that were not tried, as long as that can be told in a few draws; then the next one
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

  // ---- Nearby ----

  // A step from one of the known, mostly a fast one, to a configuration that was not tried: along one axis to
  // any of its values, or by at most one value along all axes at once. Where several tunables only pay
  // together, a model that knows none of them together has no reason to look there.
  std::optional<std::uint64_t> nearby() {
    for (std::size_t step = 0; step < kMostSteps; ++step) {
      const std::uint64_t from = fast_one();
      const std::optional<std::uint64_t> to =
          random_.uniform() < strategy_.settings_.single_steps ? along_one_axis(from) : along_all_axes(from);
      if (to && !tried_.contains(*to)) {
        return to;
      }
    }
    return std::nullopt;
  }

  // Drawn from the known, the less often the slower it is.
  std::uint64_t fast_one() {
    std::vector<double> weights;
    double left = 0;
    for (const Known& known : known_) {
      const double loss = 1 - known_.front().time_us / known.time_us;
      weights.push_back(std::exp(-loss / strategy_.settings_.temperature));
      left += weights.back();
    }
    left *= random_.uniform();
    std::size_t at = 0;
    while (at + 1 < weights.size() && left >= weights[at]) {
      left -= weights[at++];
    }
    return known_[at].number;
  }

  std::optional<std::uint64_t> along_one_axis(std::uint64_t from) {
    const auto neighbours = space_.neighbours(from, ConfigurationSpace::Reach::OneAxis);
    if (neighbours.empty()) {
      return std::nullopt;
    }
    return neighbours[random_.below(neighbours.size())];
  }

  std::optional<std::uint64_t> along_all_axes(std::uint64_t from) {
    Point point = space_.point(from);
    for (std::size_t axis = 0; axis < point.size(); ++axis) {
      const auto last = static_cast<std::uint32_t>(space_.axes()[axis].values.size() - 1);
      const std::uint64_t step = random_.below(3);
      point[axis] = step == 0 ? point[axis] - std::min(point[axis], 1u)
                              : std::min(point[axis] + static_cast<std::uint32_t>(step - 1), last);
    }
    return space_.number(point);
  }

  // ---- By models ----

  std::optional<std::uint64_t> by_trees() {
    const std::vector<Candidate>& candidates = this->candidates();
    if (!trees_) {
      trees_.emplace(inputs(&Coordinates::logarithms), shares(), random_, strategy_.settings_.trees);
    }
    return best_of(candidates, [&](const Candidate& candidate) {
      return trees_->estimate(strategy_.coordinates_.logarithms(candidate.point));
    });
  }

  std::optional<std::uint64_t> by_process() {
    const std::vector<Candidate>& candidates = this->candidates();
    if (!process_) {
      std::vector<Features> inputs = this->inputs(&Coordinates::scaled);
      std::vector<double> shares = this->shares();
      inputs.resize(std::min(inputs.size(), strategy_.settings_.process_points));
      shares.resize(inputs.size());
      const double scale =
          GaussianProcess::likeliest_scale(inputs, shares, strategy_.settings_.length_scales);
      process_.emplace(std::move(inputs), shares, scale);
    }
    return best_of(candidates, [&](const Candidate& candidate) {
      return process_->estimate(strategy_.coordinates_.scaled(candidate.point));
    });
  }

  // The fastest of the known has 1.
  std::vector<double> shares() const {
    std::vector<double> result;
    for (const Known& known : known_) {
      result.push_back(known_.front().time_us / known.time_us);
    }
    return result;
  }

  std::vector<Features> inputs(Features (Coordinates::*features)(const Point&) const) const {
    std::vector<Features> result;
    for (const Known& known : known_) {
      result.push_back((strategy_.coordinates_.*features)(space_.point(known.number)));
    }
    return result;
  }

  template <typename Model>
  std::optional<std::uint64_t> best_of(const std::vector<Candidate>& candidates,
                                       const Model& estimate) const {
    std::optional<std::uint64_t> best;
    double most = -1;
    for (const Candidate& candidate : candidates) {
      if (tried_.contains(candidate.number)) {
        continue;
      }
      const double worth = candidate.feasible * expected_improvement(estimate(candidate), 1);
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
      for (const auto number : space_.neighbours(known_[i].number, ConfigurationSpace::Reach::OneAxis)) {
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

  const ModelStrategy& strategy_;
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
};

ModelStrategy::ModelStrategy(const ConfigurationSpace& space, std::vector<std::uint64_t> first,
                             std::uint64_t seed, ModelSettings settings)
    : space_(space),
      coordinates_(space.axes()),
      first_(std::move(first)),
      seed_(seed),
      settings_(std::move(settings)) {}

std::vector<std::uint64_t> ModelStrategy::propose(std::span<const Observation> history, std::size_t count) {
  return Proposal(*this, history).run(count);
}

}  // namespace cubind
