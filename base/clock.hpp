#pragma once

#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace cubind {

// The time, as a collaborator: leases, deadlines and dates are tested without waiting. All methods are
// thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  // For durations and deadlines; never goes back.
  virtual std::chrono::steady_clock::time_point steady_now() const = 0;
  // For dates that people read.
  virtual std::chrono::system_clock::time_point wall_now() const = 0;

  // wall_now() in ISO 8601.
  std::string wall_text() const;
};

class RealClock final : public Clock {
 public:
  std::chrono::steady_clock::time_point steady_now() const override;
  std::chrono::system_clock::time_point wall_now() const override;
};

// Stands still until told otherwise. Starts at 2026-01-01T00:00:00Z and at a steady time far from zero.
class ManualClock final : public Clock {
 public:
  ManualClock();
  std::chrono::steady_clock::time_point steady_now() const override;
  std::chrono::system_clock::time_point wall_now() const override;

  // Moves both clocks forward.
  void advance(std::chrono::nanoseconds duration);
  // Moves the wall clock alone, as an administrator would, in either direction.
  void set_wall(std::chrono::system_clock::time_point time);

 private:
  mutable std::mutex mutex_;
  std::chrono::steady_clock::time_point steady_;  // guarded by mutex_
  std::chrono::system_clock::time_point wall_;    // guarded by mutex_
};

// UTC to the millisecond: "2026-01-31T09:15:00.123Z".
std::string iso8601_utc(std::chrono::system_clock::time_point time);

// The inverse; the fraction may have 0 to 9 digits. nullopt for anything else, also for dates that do not
// exist.
std::optional<std::chrono::system_clock::time_point> parse_iso8601_utc(std::string_view text);

}  // namespace cubind
