#include "server/access/audit_log.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/log.hpp"
#include "base/text.hpp"

namespace cubind {
namespace {

UniqueFd open_log(const std::filesystem::path& file) {
  if (file.empty()) {
    return UniqueFd();
  }
  UniqueFd opened(::open(file.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600));
  if (!opened) {
    throw system_error("--audit-log " + file.string(), "open", errno);
  }
  return opened;
}

}  // namespace

AuditLog::AuditLog(const std::filesystem::path& file, const Clock& clock)
    : file_(open_log(file)), clock_(clock) {}

void AuditLog::admitted(AuditEntry entry) const {
  entry.outcome = "admitted";
  write(entry);
}

bool AuditLog::Budget::take(std::int64_t second) {
  if (second_.exchange(second) != second) {
    taken_ = 0;
  }
  return taken_++ < kMostRefusals;
}

void AuditLog::refused(AuditEntry entry) const {
  const auto now =
      std::chrono::duration_cast<std::chrono::seconds>(clock_.steady_now().time_since_epoch()).count();
  if ((entry.caller.empty() ? of_unknown_ : of_known_).take(now)) {
    write(entry);
  }
}

// One write() to a file opened for appending: lines of several threads do not mix.
void AuditLog::write(const AuditEntry& entry) const {
  if (!file_) {
    return;
  }
  const OrderedJson json{{"time", clock_.wall_text()},
                         {"call", rule_of(entry.call).name},
                         {"caller", valid_utf8(entry.caller)},
                         {"peer", valid_utf8(entry.peer)},
                         {"namespace", valid_utf8(entry.name_space)},
                         {"outcome", valid_utf8(entry.outcome)}};
  const std::string line = json.dump() + "\n";
  const bool written = ::write(file_.get(), line.data(), line.size()) == static_cast<ssize_t>(line.size());
  if (!written && !failed_.exchange(true)) {
    log_error("the audit log cannot be written: lines are missing from now on");
  }
}

}  // namespace cubind
