#include "tuner/measure/margins.hpp"

#include <catch2/catch.hpp>

namespace cubind {
namespace {

const MeasureSettings kSettings;

TEST_CASE("a margin of a long time is its percentage") {
  CHECK(margin_us(100, 0.03, 0.032, kSettings) == Approx(3.0));
}

TEST_CASE("a margin is never smaller than two ticks") {
  CHECK(margin_us(0.8, 0.03, 0.032, kSettings) == Approx(0.064));
}

TEST_CASE("where a tick is more than the tie margin means are compared and above it medians") {
  const std::vector<double> one_tick_apart = {0.8, 0.8, 0.8, 0.832, 0.832};
  CHECK(location_us(one_tick_apart, 0.032, kSettings) == Approx(0.8128));
  CHECK(location_us(one_tick_apart, 0.001, kSettings) == Approx(0.8));
}

TEST_CASE("screening compares the smallest sample and of short times the median") {
  const std::vector<double> samples = {14.4, 14.0, 17.0};
  CHECK(screen_value_us(samples, 0.032, kSettings) == Approx(14.0));
  CHECK(screen_value_us(samples, 1.0, kSettings) == Approx(14.4));
  const std::vector<double> with_two_outliers = {4.96, 3.71, 3.84, 3.74, 3.68, 4.64};
  CHECK(screen_value_us(with_two_outliers, 0.032, kSettings) == Approx(3.79));
}

TEST_CASE("the first values of the settings are those that the documentation names") {
  CHECK(kSettings.screen_first_margin == 0.10);
  CHECK(kSettings.screen_margin == 0.05);
  CHECK(kSettings.tie_margin == 0.001);
  CHECK(kSettings.max_finalists == 16);
  CHECK(kSettings.min_samples == 10);
  CHECK(kSettings.max_samples == 120);
}

}  // namespace
}  // namespace cubind
