#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "tuner/search/additive_kernel.hpp"
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

// Four tunables of four values each.
const Coordinates kFour({{"A", {1, 2, 3, 4}}, {"B", {1, 2, 3, 4}}, {"C", {1, 2, 3, 4}}, {"D", {1, 2, 3, 4}}});

struct Sum {
  std::vector<Point> inputs;
  std::vector<double> targets;
};

double sum_of(const Point& at) { return std::sin(2.0 * at[0]) + 0.5 * at[1] + (at[2] == 2 ? 1 : 0); }

Sum sum(std::size_t points) {
  Sum made;
  Random random(5);
  for (std::size_t i = 0; i < points; ++i) {
    Point at(4);
    std::ranges::generate(at, [&] { return static_cast<std::uint32_t>(random.below(4)); });
    made.targets.push_back(sum_of(at));
    made.inputs.push_back(std::move(at));
  }
  return made;
}

GaussianProcess process_of(const Sum& known) {
  return {known.inputs, known.targets, AdditiveKernel::likeliest(kFour, known.inputs, known.targets)};
}

TEST_CASE("a process knows from few configurations what single tunables do") {
  const GaussianProcess process = process_of(sum(30));
  double error = 0;
  for (std::uint32_t i = 0; i < 256; ++i) {
    const Point at = {i / 64, i / 16 % 4, i / 4 % 4, i % 4};
    error += std::abs(process.estimate(at).mean - sum_of(at)) / 256;
  }
  CHECK(error < 0.1);
}

TEST_CASE("a process goes through what it was given and is unsure of values that it was not") {
  Sum known = sum(30);
  const GaussianProcess whole = process_of(known);
  CHECK(whole.estimate(known.inputs[0]).mean == Approx(known.targets[0]).margin(0.02));
  CHECK(whole.estimate(known.inputs[0]).deviation < 0.05);
  Sum part;
  for (std::size_t i = 0; i < known.inputs.size(); ++i) {
    if (known.inputs[i][0] != 3) {
      part.inputs.push_back(known.inputs[i]);
      part.targets.push_back(known.targets[i]);
    }
  }
  CHECK(process_of(part).estimate({3, 0, 0, 0}).deviation > 0.1);
}

TEST_CASE("a process is surer around what is tried now and expects the same of it") {
  const Sum known = sum(6);
  GaussianProcess process(known.inputs, known.targets, AdditiveKernel(kFour, 0.5, {0, 0.1, 0.3, 0.6}));
  const Point under_way = {0, 3, 3, 0}, next_to_it = {0, 3, 3, 1};
  const Estimate before = process.estimate(next_to_it);
  process.expect(under_way);
  CHECK(process.estimate(next_to_it).mean == before.mean);
  CHECK(process.estimate(next_to_it).deviation < before.deviation * 0.9);
}

TEST_CASE("an additive kernel is one for equal configurations and falls with each tunable that differs") {
  for (const Orders& orders :
       {Orders{1, 0, 0, 0}, Orders{0, 1, 0, 0}, Orders{0, 0, 1, 0}, Orders{0, 0, 0, 1}}) {
    const AdditiveKernel kernel(kFour, 0.5, orders);
    CHECK(kernel({1, 2, 3, 0}, {1, 2, 3, 0}) == Approx(1));
    CHECK(kernel({1, 2, 3, 0}, {1, 2, 3, 1}) < 1);
    CHECK(kernel({1, 2, 3, 0}, {1, 2, 0, 1}) < kernel({1, 2, 3, 0}, {1, 2, 3, 1}));
    CHECK(kernel({1, 2, 3, 0}, {0, 3, 0, 1}) == kernel({0, 3, 0, 1}, {1, 2, 3, 0}));
  }
  // Of four tunables one differs: three of four singles, three of six pairs, one of four threes stay.
  const double alike = AdditiveKernel(kFour, 0.5, {0, 0, 0, 1})({0, 0, 0, 0}, {0, 0, 0, 3});
  const auto of = [](const Orders& orders) {
    return AdditiveKernel(kFour, 0.5, orders)({0, 0, 0, 0}, {0, 0, 0, 3});
  };
  CHECK(of({1, 0, 0, 0}) == Approx((3 + alike) / 4));
  CHECK(of({0, 1, 0, 0}) == Approx((3 + 3 * alike) / 6));
  CHECK(of({0, 0, 1, 0}) == Approx((1 + 3 * alike) / 4));
}

TEST_CASE("an additive kernel tells round values from others next to them") {
  const Coordinates sizes({{"A", {96, 112, 128, 144}}});
  const AdditiveKernel kernel(sizes, 0.5, {1, 0, 0, 0});
  CHECK(kernel({1}, {2}) < kernel({0}, {1}) - 0.05);
  CHECK(kernel({2}, {3}) < kernel({0}, {1}) - 0.05);
}

TEST_CASE("an additive process needs neither two tunables nor different targets") {
  const Coordinates one({{"A", {1, 2, 3}}});
  const std::vector<Point> inputs = {{0}, {2}};
  const AdditiveKernel kernel = AdditiveKernel::likeliest(one, inputs, {3, 3});
  CHECK(GaussianProcess(inputs, {3, 3}, kernel).estimate({1}).mean == Approx(3));
}

TEST_CASE("coordinates leave out fixed tunables and take logarithms") {
  const Coordinates coordinates({{"A", {1, 2, 4}}, {"B", {7}}, {"C", {0, 1, 3}}, {"D", {-2, 0, 2}}});
  CHECK(coordinates.logarithms({2, 0, 1, 0}) == Features{2, 1, -2, 1});
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
}

TEST_CASE("a scaled coordinate lies between position and logarithm") {
  const Coordinates coordinates({{"A", {1, 8, 16}}});
  CHECK(coordinates.scales()[0].scaled[1] == Approx((0.5 + 0.75) / 2));
}

}  // namespace
}  // namespace cubind
