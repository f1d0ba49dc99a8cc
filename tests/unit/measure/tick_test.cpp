#include "tuner/measure/tick.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

namespace cubind::measure {
namespace {

// What a timer of this tick reads of durations that grow by a fraction of it; every third reading is a
// nanosecond off.
std::vector<double> readings(double tick_us, double step_us, int count) {
  std::vector<double> result;
  for (int i = 0; i < count; ++i) {
    const double read = std::round((0.7 + step_us * i) / tick_us) * tick_us;
    result.push_back(read + (i % 3 == 0 ? 0.001 : 0.0));
  }
  return result;
}

TEST_CASE("the tick is the step between neighbouring readings") {
  CHECK(estimate_tick_us(readings(0.032, 0.02, 96)).value() == Approx(0.032).margin(0.0011));
  CHECK(estimate_tick_us(readings(0.5, 0.02, 200)).value() == Approx(0.5).margin(0.0011));
}

TEST_CASE("skipped readings do not enlarge the tick") {
  CHECK(estimate_tick_us(readings(0.032, 0.045, 96)).value() == Approx(0.032).margin(0.0011));
}

TEST_CASE("readings without steps have no tick") {
  CHECK_FALSE(estimate_tick_us(std::vector<double>(50, 1.0)));
  CHECK_FALSE(estimate_tick_us(std::vector<double>{}));
  CHECK_FALSE(estimate_tick_us(std::vector<double>{1.0, 1.032, 1.064}));
}

}  // namespace
}  // namespace cubind::measure
