#include "base/clock.hpp"

#include <cstdio>

namespace cubind {
namespace {

using std::chrono::days;
using std::chrono::hh_mm_ss;
using std::chrono::milliseconds;
using std::chrono::year_month_day;

}  // namespace

std::string Clock::wall_text() const { return iso8601_utc(wall_now()); }

std::chrono::steady_clock::time_point RealClock::steady_now() const {
  return std::chrono::steady_clock::now();
}
std::chrono::system_clock::time_point RealClock::wall_now() const { return std::chrono::system_clock::now(); }

std::string iso8601_utc(std::chrono::system_clock::time_point time) {
  const auto midnight = std::chrono::floor<days>(time);
  const year_month_day date(midnight);
  const hh_mm_ss<milliseconds> clock(std::chrono::floor<milliseconds>(time - midnight));
  char text[64];
  std::snprintf(text, sizeof(text), "%04d-%02u-%02uT%02d:%02d:%02d.%03dZ", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
                static_cast<int>(clock.seconds().count()), static_cast<int>(clock.subseconds().count()));
  return text;
}

}  // namespace cubind
