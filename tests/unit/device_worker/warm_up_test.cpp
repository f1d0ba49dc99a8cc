#include "tuner/worker/warm_up.hpp"

#include <catch2/catch.hpp>

namespace cubind::worker {
namespace {

TEST_CASE("the clock is steady when five readings lie within 15 MHz") {
  SteadyClock clock{MeasureSettings{}};
  for (const std::uint32_t mhz : {345U, 1200U, 1965U, 1980U, 1980U, 1975U}) {
    CHECK_FALSE(clock.add(mhz));
  }
  CHECK(clock.add(1980));
}

TEST_CASE("a drift beyond 15 MHz is not steady") {
  SteadyClock clock{MeasureSettings{}};
  for (const std::uint32_t mhz : {1980U, 1975U, 1970U, 1965U, 1964U}) {
    CHECK_FALSE(clock.add(mhz));
  }
}

TEST_CASE("a clock that cannot rise is steady with its first reading") {
  SteadyClock clock{MeasureSettings{}, 1980};
  for (const std::uint32_t mhz : {345U, 1200U, 1964U}) {
    CHECK_FALSE(clock.add(mhz));
  }
  CHECK(clock.add(1965));
}

TEST_CASE("below its highest a clock is steady when five readings are close") {
  SteadyClock clock{MeasureSettings{}, 1980};
  for (int i = 0; i < 4; ++i) {
    CHECK_FALSE(clock.add(1410));
  }
  CHECK(clock.add(1410));
}

TEST_CASE("readings that were not taken are never steady") {
  SteadyClock clock{MeasureSettings{}};
  for (int i = 0; i < 10; ++i) {
    CHECK_FALSE(clock.add(0));
  }
}

TEST_CASE("the warm-up works until the clock is steady") {
  MeasureSettings settings;
  settings.steady_limit =
      std::chrono::minutes(1);  // a busy machine may stand still for longer than a GPU's clock takes
  std::uint32_t mhz = 300;
  int work = 0;
  const WarmUpResult result =
      warm_up([&] { ++work; }, [&] { return mhz = std::min(mhz + 400, 1980U); }, settings);
  CHECK(result.steady);
  CHECK(result.readings == 9);
  CHECK(work > 0);
}

TEST_CASE("the warm-up ends at its limit where the clock never settles") {
  MeasureSettings settings;
  settings.steady_limit = std::chrono::milliseconds(100);
  std::uint32_t mhz = 1000;
  const auto start = std::chrono::steady_clock::now();
  CHECK_FALSE(warm_up([] {}, [&] { return mhz = 3000 - mhz; }, settings).steady);
  CHECK(std::chrono::steady_clock::now() - start >= settings.steady_limit);
}

}  // namespace
}  // namespace cubind::worker
