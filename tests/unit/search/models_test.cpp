#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <numeric>

#include "tuner/search/coordinates.hpp"
#include "tuner/search/extra_trees.hpp"
#include "tuner/search/gaussian_process.hpp"

namespace cubind {
namespace {

using Features = std::vector<double>;

// Points of the unit square and a surface over it.
struct Surface {
  std::vector<Features> inputs;
  std::vector<double> targets;
};

double height(const Features& at) { return std::sin(3 * at[0]) + at[1] * at[1]; }

Surface surface(std::size_t points, std::uint64_t seed) {
  Surface made;
  Random random(seed);
  for (std::size_t i = 0; i < points; ++i) {
    made.inputs.push_back({random.uniform(), random.uniform()});
    made.targets.push_back(height(made.inputs.back()));
  }
  return made;
}

template <typename Model>
double mean_error(const Model& model) {
  const Surface others = surface(100, 2);
  double error = 0;
  for (std::size_t i = 0; i < others.inputs.size(); ++i) {
    error += std::abs(model.estimate(others.inputs[i]).mean - others.targets[i]) / 100;
  }
  return error;
}

TEST_CASE("trees know what they were given and are unsure between") {
  const Surface known = surface(100, 1);
  Random random(1);
  const ExtraTrees trees(known.inputs, known.targets, random);
  for (std::size_t i = 0; i < known.inputs.size(); ++i) {
    CHECK(trees.estimate(known.inputs[i]).mean == Approx(known.targets[i]));
    CHECK(trees.estimate(known.inputs[i]).deviation == Approx(0).margin(1e-6));
  }
  CHECK(mean_error(trees) < 0.15);
  CHECK(trees.estimate({0.5, 0.5}).deviation > 0);
}

TEST_CASE("trees of one target or of inputs that are all alike are leaves") {
  Random random(1);
  const ExtraTrees constant({{1, 2}, {3, 4}}, {5, 5}, random);
  CHECK(constant.estimate({9, 9}).mean == 5);
  const ExtraTrees alike({{1, 2}, {1, 2}}, {4, 6}, random);
  CHECK(alike.estimate({1, 2}).mean == 5);
}

// Two tunables without round values, and a surface over them.
struct Grid {
  Coordinates coordinates{axes()};
  std::vector<Point> points;
  std::vector<double> targets;

  Grid(std::size_t count, std::uint64_t seed, const std::function<double(const Features&)>& target) {
    Random random(seed);
    for (std::size_t i = 0; i < count; ++i) {
      points.push_back(
          {static_cast<std::uint32_t>(random.below(41)), static_cast<std::uint32_t>(random.below(41))});
      targets.push_back(target(unit(points.back())));
    }
  }

  static std::vector<Axis> axes() {
    std::vector<std::int64_t> values(41);
    std::iota(values.begin(), values.end(), 1030);
    return {{"A", values}, {"B", values}};
  }
  static Features unit(const Point& point) { return {point[0] / 40.0, point[1] / 40.0}; }

  AdditiveKernel likeliest() const {
    return GaussianProcess::likeliest_kernel(coordinates.lines(), points, targets);
  }
};

TEST_CASE("a process goes through what it was given and is unsure far away") {
  const Grid known(60, 1, height);
  const GaussianProcess process(known.points, known.targets, known.likeliest());
  const Grid others(100, 2, height);
  double error = 0;
  for (std::size_t i = 0; i < others.points.size(); ++i) {
    error += std::abs(process.estimate(others.points[i]).mean - others.targets[i]) / 100;
  }
  CHECK(error < 0.02);
  CHECK(process.estimate(known.points[0]).mean == Approx(known.targets[0]).margin(0.02));
  CHECK(process.estimate(known.points[0]).deviation < 0.05);
  const AdditiveKernel short_ranged(known.coordinates.lines(), 0.05, {0, 0, 0, 1});
  const GaussianProcess corner({{0, 0}, {1, 0}, {0, 1}}, {1, 2, 3}, short_ranged);
  CHECK(corner.estimate({40, 40}).mean == Approx(2));
  CHECK(corner.estimate({40, 40}).deviation == Approx(std::sqrt(2.0 / 3)));
}

TEST_CASE("a process that expects a target knows more around it and the same means") {
  const Grid known(10, 1, height);
  GaussianProcess process(known.points, known.targets, known.likeliest());
  const Point open = {37, 3};
  const Estimate before = process.estimate(open);
  process.expect(open);
  CHECK(process.estimate(open).mean == before.mean);
  CHECK(process.estimate(open).deviation < before.deviation / 2);
}

TEST_CASE("the likeliest kernel tells tunables that act on their own from such that act together") {
  const Grid alone(60, 1, height);
  const Grid together(60, 1, [](const Features& at) { return (at[0] < 0.5) == (at[1] < 0.5) ? 1.0 : 0.0; });
  // Points that share the first tunable, and such that share none.
  const auto shares = [](const AdditiveKernel& kernel) {
    return kernel({0, 0}, {0, 40}) - kernel({0, 0}, {40, 40});
  };
  CHECK(shares(alone.likeliest()) > 0.1);
  CHECK(shares(together.likeliest()) < shares(alone.likeliest()));
}

TEST_CASE("what follows no tunable gets a shorter length than a smooth surface") {
  const Grid smooth(60, 1, height);
  Random random(3);
  const Grid noise(60, 1, [&](const Features&) { return random.uniform(); });
  const auto near = [](const Grid& grid) { return grid.likeliest()({0, 0}, {8, 8}); };
  CHECK(near(noise) < near(smooth) - 0.1);
}

TEST_CASE("a kernel is found where all targets or all inputs are alike") {
  const Grid grid(2, 1, height);
  const std::vector<Point> alike = {{1, 1}, {1, 1}};
  for (const std::vector<double>& targets : {std::vector<double>{3, 3}, {3, 4}}) {
    const auto kernel = GaussianProcess::likeliest_kernel(grid.coordinates.lines(), alike, targets);
    CHECK(std::isfinite(GaussianProcess(alike, targets, kernel).estimate({1, 1}).mean));
  }
}

TEST_CASE("a kernel adds what single tunables, pairs, threes and all of them share") {
  const Coordinates coordinates({{"A", {0, 1}}, {"F", {7}}, {"B", {0, 1}}, {"C", {0, 1}}, {"D", {0, 1}}});
  const auto kernel = [&](const Orders& orders, const Point& other) {
    return AdditiveKernel(coordinates.lines(), 0.01, orders)({0, 0, 0, 0, 0}, other);
  };
  // Of so short a length that a tunable of another value shares nothing.
  CHECK(kernel({1, 0, 0, 0}, {1, 0, 0, 0, 0}) == Approx(3.0 / 4));
  CHECK(kernel({0, 1, 0, 0}, {1, 0, 0, 0, 0}) == Approx(3.0 / 6));
  CHECK(kernel({0, 0, 1, 0}, {1, 0, 0, 0, 0}) == Approx(1.0 / 4));
  CHECK(kernel({0, 0, 0, 1}, {1, 0, 0, 0, 0}) == Approx(0).margin(1e-9));
  CHECK(kernel({0.1, 0.2, 0.3, 0.4}, {0, 0, 0, 0, 0}) == Approx(1));
}

TEST_CASE("a kernel of one tunable or two has all orders") {
  const Orders orders{0.1, 0.2, 0.3, 0.4};
  const Coordinates one({{"A", {0, 1, 3}}});
  CHECK(AdditiveKernel(one.lines(), 1, orders)({0}, {0}) == Approx(1));
  const Coordinates two({{"A", {0, 1, 3}}, {"B", {0, 1}}});
  CHECK(AdditiveKernel(two.lines(), 1, orders)({2, 1}, {2, 1}) == Approx(1));
  CHECK(AdditiveKernel(two.lines(), 1, orders)({2, 1}, {1, 1}) < 1);
}

TEST_CASE("a round value is less alike to one beside it that is not") {
  const Coordinates coordinates({{"A", {96, 128, 160}}});
  const AdditiveKernel kernel(coordinates.lines(), 1, {1, 0, 0, 0});
  const Coordinates plain({{"A", {95, 127, 159}}});
  CHECK(kernel({0}, {1}) < AdditiveKernel(plain.lines(), 1, {1, 0, 0, 0})({0}, {1}) - 0.02);
}

TEST_CASE("coordinates leave out fixed tunables and take logarithms") {
  const Coordinates coordinates({{"A", {1, 2, 4}}, {"B", {7}}, {"C", {0, 1, 3}}, {"D", {-2, 0, 2}}});
  CHECK(coordinates.logarithms({2, 0, 1, 0}) == Features{2, 1, -2, 1});
  REQUIRE(coordinates.lines().size() == 3);
  CHECK(coordinates.lines()[1].axis == 2);
  CHECK(coordinates.lines()[0].scaled == Features{0, 0.5, 1});
}

TEST_CASE("coordinates tell round values from others where an axis has both") {
  const Coordinates coordinates({{"A", {1, 2, 4}}, {"B", {96, 128}}, {"C", {-3, -2, 0}}, {"D", {3, 5}}});
  const auto round = [&](const Point& point) {
    const Features all = coordinates.logarithms(point);
    return Features(all.begin() + 4, all.end());
  };
  CHECK(round({2, 0, 0, 0}) == Features{0, 0});
  CHECK(round({0, 1, 1, 1}) == Features{1, 1});
  CHECK(round({0, 0, 2, 0}) == Features{0, 1});
  CHECK(coordinates.lines()[0].round.empty());
  CHECK(coordinates.lines()[1].round == Features{0, 1});
}

TEST_CASE("a scaled coordinate lies between position and logarithm") {
  const Coordinates coordinates({{"A", {1, 8, 16}}});
  CHECK(coordinates.lines()[0].scaled[1] == Approx((0.5 + 0.75) / 2));
}

}  // namespace
}  // namespace cubind
