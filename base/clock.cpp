#include "base/clock.hpp"

#include <cstdint>
#include <cstdio>

namespace cubind {
namespace {

using std::chrono::day;
using std::chrono::days;
using std::chrono::hh_mm_ss;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::month;
using std::chrono::nanoseconds;
using std::chrono::seconds;
using std::chrono::sys_days;
using std::chrono::system_clock;
using std::chrono::year;
using std::chrono::year_month_day;

// A decimal field of exactly `digits` digits at `position`, which moves behind it.
std::optional<int> take_number(std::string_view text, std::size_t& position, std::size_t digits) {
  if (position + digits > text.size()) {
    return std::nullopt;
  }
  int value = 0;
  for (const char c : text.substr(position, digits)) {
    if (c < '0' || c > '9') {
      return std::nullopt;
    }
    value = value * 10 + (c - '0');
  }
  position += digits;
  return value;
}

bool take(std::string_view text, std::size_t& position, char expected) {
  if (position >= text.size() || text[position] != expected) {
    return false;
  }
  ++position;
  return true;
}

std::optional<nanoseconds> take_fraction(std::string_view text, std::size_t& position) {
  if (!take(text, position, '.')) {
    return nanoseconds(0);
  }
  std::int64_t value = 0;
  std::int64_t unit = 100'000'000;
  const std::size_t first = position;
  for (; position < text.size() && text[position] >= '0' && text[position] <= '9' && unit > 0; ++position) {
    value += (text[position] - '0') * unit;
    unit /= 10;
  }
  return position == first ? std::nullopt : std::optional(nanoseconds(value));
}

}  // namespace

std::string Clock::wall_text() const { return iso8601_utc(wall_now()); }

std::chrono::steady_clock::time_point RealClock::steady_now() const {
  return std::chrono::steady_clock::now();
}
std::chrono::system_clock::time_point RealClock::wall_now() const { return std::chrono::system_clock::now(); }

ManualClock::ManualClock()
    : steady_(std::chrono::hours(1000)), wall_(std::chrono::sys_days(std::chrono::year(2026) / 1 / 1)) {}

std::chrono::steady_clock::time_point ManualClock::steady_now() const {
  const std::lock_guard lock(mutex_);
  return steady_;
}

std::chrono::system_clock::time_point ManualClock::wall_now() const {
  const std::lock_guard lock(mutex_);
  return wall_;
}

void ManualClock::advance(std::chrono::nanoseconds duration) {
  const std::lock_guard lock(mutex_);
  steady_ += std::chrono::duration_cast<std::chrono::steady_clock::duration>(duration);
  wall_ += std::chrono::duration_cast<std::chrono::system_clock::duration>(duration);
}

void ManualClock::set_wall(std::chrono::system_clock::time_point time) {
  const std::lock_guard lock(mutex_);
  wall_ = time;
}

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
  static constexpr std::size_t kDigits[] = {4, 2, 2, 2, 2, 2};
  static constexpr char kBefore[] = {'\0', '-', '-', 'T', ':', ':'};
  int fields[6] = {};
  std::size_t position = 0;
  for (std::size_t i = 0; i < 6; ++i) {
    if (i > 0 && !take(text, position, kBefore[i])) {
      return std::nullopt;
    }
    const auto value = take_number(text, position, kDigits[i]);
    if (!value) {
      return std::nullopt;
    }
    fields[i] = *value;
  }
  const auto fraction = take_fraction(text, position);
  if (!fraction || !take(text, position, 'Z') || position != text.size()) {
    return std::nullopt;
  }
  const year_month_day date{year{fields[0]}, month{static_cast<unsigned>(fields[1])},
                            day{static_cast<unsigned>(fields[2])}};
  if (!date.ok() || fields[3] > 23 || fields[4] > 59 || fields[5] > 59) {
    return std::nullopt;
  }
  return sys_days(date) + hours(fields[3]) + minutes(fields[4]) + seconds(fields[5]) +
         duration_cast<system_clock::duration>(*fraction);
}

}  // namespace cubind
