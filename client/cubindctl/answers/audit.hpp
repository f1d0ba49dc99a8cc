// The checks of a record before its variant is shipped, each with its evidence.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client/cubindctl/answers/explanation.hpp"
#include "client/cubindctl/options.hpp"
#include "client/cubindctl/terminal/json_output.hpp"

namespace cubind::ctl {

/// Note: worth knowing, and no reason to wait.
enum class Verdict : std::uint8_t { Ok, Note, Fail };
std::string_view to_string(Verdict verdict);

struct AuditLine {
  std::string check;  // "reference", "tails", ...
  Verdict verdict = Verdict::Ok;
  std::string evidence;  // what was found, and where it fails the remedy
};

struct AuditInput {
  const TableRecord& record;
  const Explanation& explanation;  // of the record's question
  const KernelSpec& spec;
  /// What the daemon answers the record's question with today.
  std::string match;
  std::string why;  // nothing answers; empty: something does
  /// Problems of the kernel on this device that were asked for and not measured; empty: another record's
  /// audit tells it.
  std::optional<std::uint64_t> wanted;
};

/// In the order in which a reader cares: is it right, is it fast, is it today's.
std::vector<AuditLine> audit(const AuditInput& input);

/// The document of `cubindctl audit --json`. Asks the daemon.
OutputJson audit_document(const AuditOptions& options, const CommonOptions& common);

}  // namespace cubind::ctl
