#include "tuner/search/screening.hpp"

#include <catch2/catch.hpp>

namespace cubind {
namespace {

const MeasureSettings kSettings;
constexpr double kTick = 0.032;

ScreenStep step(const std::vector<double>& samples, std::optional<double> best, double tick = kTick,
                bool must = false) {
  return screen_step({samples, best, tick, must}, kSettings);
}

TEST_CASE("a trial without samples gets one") {
  CHECK(step({}, 100.0) == ScreenStep{ScreenVerdict::Measure, 1});
}

TEST_CASE("after one sample a trial beyond ten percent of the best is stopped") {
  CHECK(step({110.1}, 100.0).verdict == ScreenVerdict::Hopeless);
  CHECK(step({109.9}, 100.0) == ScreenStep{ScreenVerdict::Measure, 2});
}

TEST_CASE("after three samples a trial whose smallest is beyond five percent of the best is stopped") {
  CHECK(step({107, 109, 105.1}, 100.0).verdict == ScreenVerdict::Hopeless);
  CHECK(step({107, 109, 104.9}, 100.0).verdict == ScreenVerdict::Survivor);
}

TEST_CASE("the first trial is screened fully whatever it reads") {
  CHECK(step({1000.0}, std::nullopt) == ScreenStep{ScreenVerdict::Measure, 2});
  CHECK(step({1000.0, 1000.0, 1000.0}, std::nullopt).verdict == ScreenVerdict::Survivor);
}

TEST_CASE("the default configuration is never stopped by screening") {
  CHECK(step({50.0}, 10.0, kTick, true) == ScreenStep{ScreenVerdict::Measure, 2});
  CHECK(step({50.0, 50.0, 50.0}, 10.0, kTick, true).verdict == ScreenVerdict::Survivor);
}

std::vector<double> with_the_rest(std::vector<double> samples, double us) {
  samples.resize(kSettings.short_screen_samples, us);
  return samples;
}

TEST_CASE("two ticks of difference never stop a trial") {
  // 0.064 us is 13 % of 0.5 us, beyond the second margin of 8 %.
  CHECK(step(with_the_rest({}, 0.563), 0.5).verdict == ScreenVerdict::Survivor);
  CHECK(step(with_the_rest({}, 0.57), 0.5).verdict == ScreenVerdict::Hopeless);
}

TEST_CASE("a short time is that of the median of eighteen samples") {
  CHECK(step({2.0}, 2.0) == ScreenStep{ScreenVerdict::Measure, 2});
  CHECK(step({2.0, 2.0, 2.0}, 2.0) == ScreenStep{ScreenVerdict::Measure, 15});
  CHECK(step(with_the_rest(std::vector<double>(8, 1.9), 2.15), 2.0).verdict == ScreenVerdict::Survivor);
  CHECK(step(with_the_rest(std::vector<double>(8, 1.9), 2.17), 2.0).verdict == ScreenVerdict::Hopeless);
  CHECK(step(with_the_rest(std::vector<double>(8, 2.6), 2.0), 2.0).verdict == ScreenVerdict::Survivor);
}

TEST_CASE("where the best is short one sample that is far too long stops no trial") {
  CHECK(step({}, 2.0) == ScreenStep{ScreenVerdict::Measure, 3});
  CHECK(step({6.0, 2.1, 2.0}, 2.0) == ScreenStep{ScreenVerdict::Measure, 15});
  CHECK(step(with_the_rest({6.0}, 2.1), 2.0) == ScreenStep{ScreenVerdict::Survivor, 0});
  CHECK(step({2.5, 2.5, 2.6}, 2.0) == ScreenStep{ScreenVerdict::Hopeless, 0});
}

TEST_CASE("stored samples beyond what screening asks for are judged as they are") {
  CHECK(step({105, 109, 106, 101}, 100.0).verdict == ScreenVerdict::Survivor);
}

TEST_CASE("at most sixteen finalists go on and the fastest come first") {
  std::vector<Screened> screened;
  for (std::size_t i = 0; i < 20; ++i) {
    screened.push_back({i, 100.11 - 0.01 * static_cast<double>(i), false});
  }
  const auto finalists = choose_finalists(screened, kTick, kSettings);
  CHECK(finalists == std::vector<std::size_t>{19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4});
}

TEST_CASE("of short kernels more go on because few samples of few ticks rank them badly") {
  const std::vector<Screened> screened(60, {0, 2.0, false});
  CHECK(choose_finalists(screened, kTick, kSettings).size() == kSettings.short_finalists);
}

TEST_CASE("finalists lie within 5 % of the fastest, short ones within 8 %") {
  const std::vector<Screened> screened = {{0, 100, false}, {1, 104.9, false}, {2, 105.1, false}};
  CHECK(choose_finalists(screened, kTick, kSettings).size() == 2);
  const std::vector<Screened> shorter = {{0, 10, false}, {1, 10.7, false}, {2, 10.9, false}};
  CHECK(choose_finalists(shorter, kTick, kSettings).size() == 2);
}

TEST_CASE("a survivor of an early and slow best is no finalist once a faster one is known") {
  CHECK(choose_finalists(std::vector<Screened>{{0, 20, false}, {1, 10, false}}, kTick, kSettings) ==
        std::vector<std::size_t>{1});
}

TEST_CASE("the default competes in the finals however slow it is") {
  std::vector<Screened> screened = {{0, 99.0, true}};
  for (std::size_t i = 1; i < 20; ++i) {
    screened.push_back({i, 90.0, false});
  }
  const auto finalists = choose_finalists(screened, kTick, kSettings);
  CHECK(finalists.size() == 16);
  CHECK(finalists.back() == 0);
}

}  // namespace
}  // namespace cubind
