// Whether an answer is signed for the very question that was asked. Without messages: C++ and Python check
// alike.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "client/reply_check.hpp"
#include "trust/fingerprint.hpp"
#include "trust/serials.hpp"
#include "trust/trust_file.hpp"

namespace cubind {

/// A trust file with the serials that this user's clients have accepted. Safe on many threads.
class AnswerTrust {
 public:
  /// `serials`: the folder that remembers them. Throws as read_trust_file() does.
  AnswerTrust(const std::string& file, std::filesystem::path serials);
  /// Of `file`, else of CUBIND_TRUST. Null: neither names one, and answers need no signature.
  static std::shared_ptr<const AnswerTrust> of(const std::string& file);

  /// `cubin`: the bytes that will be loaded. Throws PermissionDenied for an answer without a signature of a
  /// trusted key, FailedPrecondition for one that has expired or has an older serial than an earlier one,
  /// DataLoss at the field that differs from the fingerprint.
  void check(const Asked& asked, const Told& told, std::string_view cubin,
             std::chrono::system_clock::time_point now) const;

 private:
  const Trust trust_;
  const Serials serials_;
};

}  // namespace cubind
