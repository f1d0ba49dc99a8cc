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

TEST_CASE("a date in UTC is one that the calendar has") {
  for (const char* date : {"2026-01-31T09:15:00Z", "2024-02-29T23:59:60.5Z", "1969-12-31T23:59:59.999Z"}) {
    CHECK(is_iso8601_utc(date));
  }
  for (const char* date :
       {"", "Z", "2026-01-31", "2026-02-29T00:00:00Z", "2026-13-01T00:00:00Z", "2026-00-01T00:00:00Z",
        "2026-01-01T24:00:00Z", "2026-01-01T00:60:00Z", "2026-01-01T00:00:61Z", "2026-01-01T00:00:00",
        "2026-01-01T00:00:00.Z", "2026-01-01T00:00:00,5Z", "2026-01-01 00:00:00Z", "+026-01-01T00:00:00Z"}) {
    CAPTURE(date);
    CHECK_FALSE(is_iso8601_utc(date));
  }
}

TEST_CASE("a date that the clock cannot count to is the nearest day that it can") {
  CHECK(iso8601_utc(parse_iso8601_utc("9999-12-31T23:59:59Z").value()) == "2262-04-11T00:00:00.000Z");
  CHECK(iso8601_utc(parse_iso8601_utc("0000-01-01T00:00:00Z").value()) == "1677-09-22T00:00:00.000Z");
  CHECK(iso8601_utc(parse_iso8601_utc("2262-04-10T12:00:00Z").value()) == "2262-04-10T12:00:00.000Z");
}

TEST_CASE("a manual clock moves only when it is advanced") {
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
