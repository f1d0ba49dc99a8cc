// Checks that an answer is signed for exactly the question that was asked. Needs no protobuf messages, so
// that C++ and Python share it.
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
  /// `serials`: the folder that stores them. Throws like read_trust_file().
  AnswerTrust(const std::string& file, std::filesystem::path serials);
  /// The trust of `file`, else of the file that CUBIND_TRUST names. Null if neither names one: answers need
  /// no signature.
  static std::shared_ptr<const AnswerTrust> of(const std::string& file);

  /// `cubin`: the bytes that will be loaded. Throws PermissionDenied if no trusted key has signed the answer,
  /// FailedPrecondition if it has expired or its serial is older than an earlier one's, and DataLoss at the
  /// field that differs from the fingerprint.
  void check(const Asked& asked, const Told& told, std::string_view cubin,
             std::chrono::system_clock::time_point now) const;

 private:
  const Trust trust_;
  const Serials serials_;
};

}  // namespace cubind
