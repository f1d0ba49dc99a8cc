#include "base/clock.hpp"

#include <catch2/catch.hpp>

#include "tests/support/manual_clock.hpp"

namespace cubind {

using namespace std::chrono_literals;

TEST_CASE("dates are written to the millisecond in UTC") {
  const std::chrono::system_clock::time_point epoch;
  CHECK(iso8601_utc(epoch) == "1970-01-01T00:00:00.000Z");
  CHECK(iso8601_utc(epoch + 1769850900123ms) == "2026-01-31T09:15:00.123Z");
  CHECK(iso8601_utc(epoch - 1ms) == "1969-12-31T23:59:59.999Z");
}

TEST_CASE("a manual clock moves only when it is told to") {
  test::ManualClock clock;
  const auto start = clock.steady_now();
  CHECK(clock.wall_text() == "2026-01-01T00:00:00.000Z");
  clock.advance(1500ms);
  CHECK(clock.steady_now() - start == 1500ms);
  CHECK(clock.wall_text() == "2026-01-01T00:00:01.500Z");
}

TEST_CASE("the real clock runs") {
  const RealClock clock;
  const auto first = clock.steady_now();
  CHECK(clock.steady_now() >= first);
  CHECK(clock.wall_now() > std::chrono::system_clock::time_point(1700000000s));
}

}  // namespace cubind
