// The roles of a caller.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace cubind {

enum class CallerRole : std::uint8_t {
  Reader,     // asks for existing answers; starts no compile or measurement
  Tuner,      // a reader whose questions and tunings start jobs
  Publisher,  // adds tables
  Agent,      // takes leases and reports results
  Admin,      // everything
};

inline constexpr std::array<CallerRole, 5> kCallerRoles{
    CallerRole::Reader, CallerRole::Tuner, CallerRole::Publisher, CallerRole::Agent, CallerRole::Admin};

/// "reader", "tuner", "publisher", "agent", "admin"
std::string_view role_name(CallerRole role);
std::optional<CallerRole> role_of_name(std::string_view name);

class RoleSet {
 public:
  constexpr RoleSet() = default;
  constexpr RoleSet(std::initializer_list<CallerRole> roles) {
    for (const CallerRole role : roles) {
      add(role);
    }
  }

  constexpr void add(CallerRole role) { bits_ |= bit(role); }
  constexpr bool has(CallerRole role) const { return (bits_ & bit(role)) != 0; }
  constexpr bool empty() const { return bits_ == 0; }
  bool operator==(const RoleSet&) const = default;

  /// Whether a holder of these roles may act as `role`: a tuner also as a reader, an admin as any role.
  constexpr bool includes(CallerRole role) const {
    return has(role) || has(CallerRole::Admin) || (role == CallerRole::Reader && has(CallerRole::Tuner));
  }

  /// "tuner, publisher"
  std::string to_string() const;

 private:
  static constexpr std::uint8_t bit(CallerRole role) {
    return static_cast<std::uint8_t>(1U << static_cast<unsigned>(role));
  }

  std::uint8_t bits_ = 0;
};

}  // namespace cubind
