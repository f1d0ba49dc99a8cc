#include "base/clock.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>

#include "base/identifier.hpp"

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

std::optional<std::chrono::system_clock::time_point> parse_iso8601_utc(std::string_view text) {
  constexpr std::string_view kForm = "0000-00-00T00:00:00";
  if (text.size() <= kForm.size() || !text.ends_with('Z')) {
    return std::nullopt;
  }
  for (std::size_t i = 0; i < kForm.size(); ++i) {
    if (kForm[i] == '0' ? !is_digit(text[i]) : text[i] != kForm[i]) {
      return std::nullopt;
    }
  }
  const std::string_view fraction = text.substr(kForm.size(), text.size() - kForm.size() - 1);
  if (!fraction.empty() && (fraction.size() < 2 || fraction.front() != '.' ||
                            !std::ranges::all_of(fraction.substr(1), is_digit))) {
    return std::nullopt;
  }
  const auto number = [&](std::size_t at, std::size_t digits) {
    unsigned value = 0;
    std::from_chars(text.data() + at, text.data() + at + digits, value);
    return value;
  };
  const year_month_day date{std::chrono::year(static_cast<int>(number(0, 4))),
                            std::chrono::month(number(5, 2)), std::chrono::day(number(8, 2))};
  if (!date.ok() || number(11, 2) >= 24 || number(14, 2) >= 60 || number(17, 2) > 60) {
    return std::nullopt;
  }
  using TimePoint = std::chrono::system_clock::time_point;
  constexpr std::chrono::sys_seconds kFirst = std::chrono::ceil<days>(TimePoint::min());
  constexpr std::chrono::sys_seconds kLast = std::chrono::floor<days>(TimePoint::max());
  const std::chrono::sys_seconds time = std::chrono::sys_days(date) + std::chrono::hours(number(11, 2)) +
                                        std::chrono::minutes(number(14, 2)) +
                                        std::chrono::seconds(number(17, 2));
  return std::clamp(time, kFirst, kLast);
}

bool is_iso8601_utc(std::string_view text) { return parse_iso8601_utc(text).has_value(); }

}  // namespace cubind
