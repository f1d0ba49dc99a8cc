#include "client/cubindctl/few_variants.hpp"

#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <limits>
#include <random>

namespace cubind::ctl {
namespace {

using Indices = std::vector<std::size_t>;
constexpr double kNever = std::numeric_limits<double>::infinity();

// Of all sets of at most that size.
double least_worst(const std::vector<ProblemRegrets>& problems, int size) {
  const std::size_t count = problems.front().configurations.size();
  double least = kNever;
  for (std::uint32_t mask = 0; mask < (1U << count); ++mask) {
    double worst = 0;
    for (const ProblemRegrets& problem : problems) {
      double best = problem.of_default;
      for (std::size_t i = 0; i < count; ++i) {
        best = ((mask >> i) & 1U) != 0 ? std::min(best, problem.configurations[i]) : best;
      }
      worst = std::max(worst, best);
    }
    least = std::popcount(mask) <= size ? std::min(least, worst) : least;
  }
  return least;
}

TEST_CASE("each size of a set of variants has the least worst regret, with a mean and whom it serves") {
  const auto sets = best_sets({{{0.0, 0.05}, 0.3}, {{0.4, 0.02}, 0.0}, {{0.0, kNever}, 0.1}}, 4);
  REQUIRE(sets.size() == 2);
  CHECK(sets[0].configurations.empty());
  CHECK(sets[0].worst == 0.3);
  CHECK(sets[0].mean == Approx(0.4 / 3));
  CHECK(sets[1].configurations == Indices{0});
  CHECK(sets[1].serves == std::vector<std::optional<std::size_t>>{0, std::nullopt, 0});
  CHECK(sets[1].worst == 0);
}

TEST_CASE("the best single variant may have no place in a larger set") {
  const auto sets = best_sets({{{0.2, 0.0, kNever}, 0.5}, {{0.2, kNever, 0.0}, 0.5}}, 2);
  REQUIRE(sets.size() == 3);
  CHECK(sets[1].configurations == Indices{0});
  CHECK(sets[2].configurations == Indices{1, 2});
}

TEST_CASE("the sets are as good as the best of all sets") {
  std::mt19937 random(7);
  const auto share = [&] { return static_cast<double>(random() % 100) / 100; };
  for (int round = 0; round < 40; ++round) {
    std::vector<ProblemRegrets> problems(6);
    for (ProblemRegrets& problem : problems) {
      problem.of_default = 0.5 + share();
      problem.configurations.resize(8);
      std::ranges::generate(problem.configurations, [&] { return random() % 5 == 0 ? kNever : share(); });
      problem.configurations[random() % 8] = 0;
    }
    const auto sets = best_sets(problems, 5);
    for (std::size_t size = 0; size < sets.size(); ++size) {
      CHECK(sets[size].worst == least_worst(problems, static_cast<int>(size)));
      CHECK(sets[size].configurations.size() <= size);
    }
  }
}

TEST_CASE("without any configuration the default serves") {
  const auto sets = best_sets({{{}, 0.0}, {{}, 0.0}}, 3);
  REQUIRE(sets.size() == 1);
  CHECK(sets[0].worst == 0);
}

TEST_CASE("sixty configurations and two hundred problems end within the steps of the search") {
  std::mt19937 random(1);
  std::vector<ProblemRegrets> problems(200);
  for (ProblemRegrets& problem : problems) {
    problem.of_default = 1;
    problem.configurations.resize(60);
    std::ranges::generate(problem.configurations,
                          [&] { return static_cast<double>(random() % 1000) / 1000; });
  }
  const auto sets = best_sets(problems, 4);
  REQUIRE(sets.size() == 5);
  CHECK(sets[4].worst < sets[1].worst);
}

}  // namespace
}  // namespace cubind::ctl
