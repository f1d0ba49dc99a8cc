#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace cubind {

/// The time, as a collaborator: leases, deadlines and dates are tested without waiting. All methods are
/// thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  /// For durations and deadlines; never goes back.
  virtual std::chrono::steady_clock::time_point steady_now() const = 0;
  /// For dates that people read.
  virtual std::chrono::system_clock::time_point wall_now() const = 0;

  /// wall_now() in ISO 8601.
  std::string wall_text() const;
};

/// The clocks of this machine.
class RealClock final : public Clock {
 public:
  std::chrono::steady_clock::time_point steady_now() const override;
  std::chrono::system_clock::time_point wall_now() const override;
};

/// UTC to the millisecond: "2026-01-31T09:15:00.123Z".
std::string iso8601_utc(std::chrono::system_clock::time_point time);

/// The time of such a text, which may have any number of digits after a point or none; they are dropped.
/// Absent: it is no such text, or of a day that the calendar does not have.
std::optional<std::chrono::system_clock::time_point> parse_iso8601_utc(std::string_view text);
/// Whether parse_iso8601_utc() reads the text.
bool is_iso8601_utc(std::string_view text);

}  // namespace cubind
