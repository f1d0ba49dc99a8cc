// Whether an answer is signed for the very question that was asked. Without messages: C++ and Python check
// alike.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "base/digest.hpp"
#include "client/rule.hpp"
#include "trust/fingerprint.hpp"
#include "trust/serials.hpp"
#include "trust/trust_file.hpp"

namespace cubind {

/// What a fingerprint is compared with.
struct ClaimedAnswer {
  // The question:
  std::string name_space;
  bool warm_l2 = false;
  bool graph_launch = false;
  std::string numerics;  // "tolerance", "reproducible", "invariant:N"
  // The reply:
  std::string fingerprint;
  std::string signature;  // packed
  std::string match;      // "exact", "bucket"
  Problem measured_problem;
  Digest device_class;  // that was asked for
  Digest measured_device_class;
  Digest artifact;  // key
  std::string toolchain, architecture;
  Digest cubin;  // of the bytes that are loaded
  std::uint64_t cubin_bytes = 0;
  std::string evidence;  // "measured"
  bool provisional = false;
};

/// A trust file with the serials that this user's clients have accepted. Safe on many threads.
class AnswerTrust {
 public:
  /// `serials`: the folder that remembers them. Throws as read_trust_file() does.
  AnswerTrust(const std::string& file, std::filesystem::path serials);
  /// Of `file`, else of CUBIND_TRUST. Null: neither names one, and answers need no signature.
  static std::shared_ptr<const AnswerTrust> of(const std::string& file);

  /// Throws PermissionDenied for an answer without a signature of a trusted key, FailedPrecondition for one
  /// that has expired or has an older serial than an earlier one, DataLoss at the field that differs from the
  /// fingerprint.
  void check(const ClaimedAnswer& answer, const RuleParts& rule,
             std::chrono::system_clock::time_point now) const;

 private:
  const Trust trust_;
  const Serials serials_;
};

}  // namespace cubind
