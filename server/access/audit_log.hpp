// The audit log: a JSON line for each call that changes something or is refused.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/unique_fd.hpp"
#include "server/access/call_rules.hpp"

namespace cubind {

struct AuditEntry {
  Call call = Call::GetStatus;
  std::string caller;  // "alice (token 9f3c2ab811d04e57)"; empty: not known
  std::string peer;    // "ipv4:10.0.0.7:40000"
  std::string name_space;
  std::string outcome;  // "admitted", or the refusal
};

/// Thread-safe. {"time": ..., "call": ..., "caller": ..., "peer": ..., "namespace": ..., "outcome": ...}; the
/// file is appended to, has mode 0600, and is never cut.
class AuditLog {
 public:
  /// `file` empty: nothing is written. Throws if it cannot be opened.
  AuditLog(const std::filesystem::path& file, const Clock& clock);

  void admitted(AuditEntry entry) const;
  /// Of more than kMostRefusals in a second, only the first are written: callers cannot fill the disk. Those
  /// without a valid token and those with one have a number each.
  void refused(AuditEntry entry) const;

  static constexpr std::uint32_t kMostRefusals = 100;

 private:
  /// How much is written within a second.
  class Budget {
   public:
    bool take(std::int64_t second);

   private:
    std::atomic<std::int64_t> second_{0};  // of the count
    std::atomic<std::uint32_t> taken_{0};
  };

  void write(const AuditEntry& entry) const;

  const UniqueFd file_;
  const Clock& clock_;
  mutable Budget of_known_, of_unknown_;     // callers
  mutable std::atomic<bool> failed_{false};  // the log says it once
};

}  // namespace cubind
