#include "base/clock.hpp"

#include <catch2/catch.hpp>

namespace cubind {

using namespace std::chrono_literals;

TEST_CASE("dates are written to the millisecond in UTC") {
  const std::chrono::system_clock::time_point epoch;
  CHECK(iso8601_utc(epoch) == "1970-01-01T00:00:00.000Z");
  CHECK(iso8601_utc(epoch + 1769850900123ms) == "2026-01-31T09:15:00.123Z");
  CHECK(iso8601_utc(epoch - 1ms) == "1969-12-31T23:59:59.999Z");
}

TEST_CASE("dates are read back") {
  CHECK(parse_iso8601_utc("2026-01-31T09:15:00.123Z") ==
        std::chrono::system_clock::time_point(1769850900123ms));
  CHECK(parse_iso8601_utc("2026-01-31T09:15:00Z") == std::chrono::system_clock::time_point(1769850900000ms));
  CHECK(parse_iso8601_utc("2024-02-29T00:00:00.5Z") ==
        std::chrono::system_clock::time_point(1709164800500ms));
}

TEST_CASE("what is no date is absent") {
  for (const char* text : {"", "2026", "2026-01-31", "2026-02-30T00:00:00Z", "2025-02-29T00:00:00Z",
                           "2026-01-31T24:00:00Z", "2026-01-31T09:60:00Z", "2026-01-31T09:15:00",
                           "2026-01-31T09:15:00.Z", "2026-01-31T09:15:00.1234567890Z", "2026-01-31 09:15:00Z",
                           "2026-01-31T09:15:00+00:00", "2026-13-01T00:00:00Z", "2026-01-31T09:15:00Zx"}) {
    INFO(text);
    CHECK_FALSE(parse_iso8601_utc(text));
  }
}

TEST_CASE("a manual clock moves only when it is told to") {
  ManualClock clock;
  const auto start = clock.steady_now();
  CHECK(clock.wall_text() == "2026-01-01T00:00:00.000Z");
  clock.advance(1500ms);
  CHECK(clock.steady_now() - start == 1500ms);
  CHECK(clock.wall_text() == "2026-01-01T00:00:01.500Z");
}

TEST_CASE("setting the wall clock leaves durations alone") {
  ManualClock clock;
  const auto start = clock.steady_now();
  clock.set_wall(std::chrono::system_clock::time_point(0s));
  CHECK(clock.steady_now() == start);
  CHECK(clock.wall_text() == "1970-01-01T00:00:00.000Z");
}

TEST_CASE("the real clock runs") {
  const RealClock clock;
  const auto first = clock.steady_now();
  CHECK(clock.steady_now() >= first);
  CHECK(clock.wall_now() > std::chrono::system_clock::time_point(1700000000s));
}

}  // namespace cubind
