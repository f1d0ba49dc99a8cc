#include "tuner/search/annealing.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

namespace cubind {
namespace {

const ConfigurationSpace& grid() {
  static const ConfigurationSpace space(
      {{"A", {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}}, {"B", {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}}}, {});
  return space;
}

std::uint64_t at(std::uint32_t a, std::uint32_t b) { return grid().number({a, b}).value(); }

Observation took(std::uint64_t number, double time_us) { return {number, Outcome::Correct, time_us}; }

// By whether the steps lie next to `place`: in its row or column, or one off in both.
bool beside(std::uint64_t step, std::uint64_t place) {
  const Point a = grid().point(step), b = grid().point(place);
  const auto off = [&](std::size_t axis) { return std::max(a[axis], b[axis]) - std::min(a[axis], b[axis]); };
  return off(0) == 0 || off(1) == 0 || (off(0) == 1 && off(1) == 1);
}

std::set<std::uint64_t> steps_from(std::span<const Observation> trials, std::uint64_t seed) {
  Random random(seed);
  std::set<std::uint64_t> steps;
  for (int i = 0; i < 20; ++i) {
    steps.insert(next_step(grid(), trials, Tried(trials), seed, random).value());
  }
  return steps;
}

bool leads_to(std::span<const Observation> trials, std::uint64_t place, std::uint64_t seed = 1) {
  return std::ranges::all_of(steps_from(trials, seed), [&](auto step) { return beside(step, place); });
}

TEST_CASE("a walk goes on next to what was faster and not next to what failed or has no time") {
  const std::vector<Observation> trials = {took(at(0, 0), 10),
                                           took(at(4, 4), 9),
                                           {at(9, 0), Outcome::Runtime, std::nullopt},
                                           {at(0, 9), Outcome::Correct, std::nullopt}};
  CHECK(leads_to(trials, at(4, 4)));
}

TEST_CASE("a walk seldom goes on next to what is much slower and often next to what is hardly slower") {
  int little = 0, much = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    little += leads_to(std::vector{took(at(0, 0), 10), took(at(5, 5), 10.2)}, at(5, 5), seed) ? 1 : 0;
    much += leads_to(std::vector{took(at(0, 0), 10), took(at(5, 5), 13)}, at(5, 5), seed) ? 1 : 0;
  }
  CHECK(little > 140);  // exp(-0.2): 164
  CHECK(little < 185);
  CHECK(much < 25);  // exp(-3): 10
  CHECK(much > 1);
}

TEST_CASE("a walk proposes nothing that was tried and ends where all nearby was") {
  const ConfigurationSpace space({{"A", {0, 1, 2}}, {"B", {0, 1}}}, {});
  std::vector<Observation> trials = {took(0, 10)};
  std::set<std::uint64_t> met = {0};
  Random random(1);
  while (const auto step = next_step(space, trials, Tried(trials), 1, random)) {
    REQUIRE(met.insert(*step).second);
    trials.push_back(took(*step, 10));
  }
  CHECK(met.size() >= 5);  // the sixth may be out of reach
}

TEST_CASE("a walk without a time does not begin") {
  Random random(1);
  const std::vector<Observation> trials = {{at(0, 0), Outcome::Compile, std::nullopt}};
  CHECK_FALSE(next_step(grid(), trials, Tried(trials), 1, random));
}

}  // namespace
}  // namespace cubind
