#include "tuner/search/annealing.hpp"

#include <cmath>

namespace cubind {
namespace {

constexpr double kTemperature = 0.1;  // a step to one slower by this share is taken with a chance of 1/e
constexpr double kFar = 0.6;          // share of the steps that change one tunable to any of its values
constexpr int kDraws = 400;

// A step to any value of one tunable, or of each tunable to a neighbouring value or none.
Point beside(Point point, const std::vector<Axis>& axes, Random& random) {
  if (random.uniform() < kFar) {
    const std::size_t axis = random.below(axes.size());
    point[axis] = static_cast<std::uint32_t>(random.below(axes[axis].values.size()));
    return point;
  }
  for (std::size_t axis = 0; axis < axes.size(); ++axis) {
    const std::uint64_t step = random.below(3);
    if (step == 0 && point[axis] > 0) {
      --point[axis];
    } else if (step == 1 && point[axis] + 1 < axes[axis].values.size()) {
      ++point[axis];
    }
  }
  return point;
}

// Where the trials have led the walk.
std::optional<std::uint64_t> place_of(std::span<const Observation> trials, std::uint64_t seed) {
  const Observation* place = nullptr;
  for (const Observation& trial : trials) {
    if (trial.outcome != Outcome::Correct || !trial.time_us) {
      continue;
    }
    const double slower = place != nullptr ? *trial.time_us / *place->time_us - 1 : 0;
    if (Random(seed + trial.number).uniform() < std::exp(-slower / kTemperature)) {
      place = &trial;
    }
  }
  return place != nullptr ? std::optional(place->number) : std::nullopt;
}

}  // namespace

std::optional<std::uint64_t> next_step(const ConfigurationSpace& space, std::span<const Observation> trials,
                                       const Tried& tried, std::uint64_t seed, Random& random) {
  const std::optional<std::uint64_t> place = place_of(trials, seed);
  for (int draw = 0; place && draw < kDraws; ++draw) {
    const auto number = space.number(beside(space.point(*place), space.axes(), random));
    if (number && !tried.contains(*number)) {
      return number;
    }
  }
  return std::nullopt;
}

}  // namespace cubind
