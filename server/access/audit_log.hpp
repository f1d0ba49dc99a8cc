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
  std::string caller;  // "alice (token 9f3c2ab811d04e57)"; empty: unknown
  std::string peer;    // "ipv4:10.0.0.7:40000"
  std::string name_space;
  std::string outcome;  // "admitted", or the refusal
};

/// Thread-safe. {"time": ..., "call": ..., "caller": ..., "peer": ..., "namespace": ..., "outcome": ...}; the
/// file has mode 0600, is appended to and never truncated.
class AuditLog {
 public:
  /// An empty `file` writes nothing. Throws if the file cannot be opened.
  AuditLog(const std::filesystem::path& file, const Clock& clock);

  void admitted(AuditEntry entry) const;
  /// Writes at most kMostRefusals refusals per second, so that callers cannot fill the disk. Callers with and
  /// without a valid token are counted separately.
  void refused(AuditEntry entry) const;

  static constexpr std::uint32_t kMostRefusals = 100;

 private:
  /// The limit of lines per second.
  class Budget {
   public:
    bool take(std::int64_t second);

   private:
    std::atomic<std::int64_t> second_{0};  // the second that is counted
    std::atomic<std::uint32_t> taken_{0};
  };

  void write(const AuditEntry& entry) const;

  const UniqueFd file_;
  const Clock& clock_;
  mutable Budget of_known_, of_unknown_;     // callers
  mutable std::atomic<bool> failed_{false};  // so that the log reports it once
};

}  // namespace cubind
