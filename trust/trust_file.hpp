// A trust file lists the keys whose bundles and answers are accepted, until when, and for which namespaces.
// Each key has a line of four words:
//
//   # key                                                      name  expires     namespaces
//   RWSTusczmS7QH5L2It51vEC1qhlIWfNQ4lGb1GLMXmc9CFvB2yiwD7i8   acme  2027-03-01  *
//
// The key is a line of minisign.pub. It expires at the beginning of that day, UTC. Namespaces are separated
// by commas; "*" means all, and "-" the unnamed one.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "trust/minisign.hpp"

namespace cubind {

struct TrustedKey {
  PublicKey key;
  std::string name;
  std::chrono::system_clock::time_point expires;
  std::vector<std::string> namespaces;  // {"*"}: all
};

class Trust {
 public:
  Trust(std::vector<TrustedKey> keys, std::string file) : keys_(std::move(keys)), file_(std::move(file)) {}

  /// Throws PermissionDenied at `where` for a key that is not listed or has expired.
  const TrustedKey& key_of(const KeyId& id, std::chrono::system_clock::time_point now,
                           const std::string& where) const;
  /// Throws PermissionDenied at `where` if the key may not sign for the namespace.
  void require_namespace(const TrustedKey& key, std::string_view name_space, const std::string& where) const;

  const std::vector<TrustedKey>& keys() const { return keys_; }
  const std::string& file() const { return file_; }

 private:
  std::vector<TrustedKey> keys_;
  std::string file_;  // for messages
};

/// Throws InvalidArgument at "FILE line 3".
Trust parse_trust(std::string_view text, const std::string& file);
/// Throws like read_file() and parse_trust(), and FailedPrecondition if another user could have written it.
Trust read_trust_file(const std::filesystem::path& file);

/// The beginning of a day in UTC, of "2027-03-01", or a time of parse_iso8601_utc(). Throws InvalidArgument.
std::chrono::system_clock::time_point parse_expiry(const std::string& text, const std::string& where);
/// "2027-03-01" of such a time.
std::string day_text(std::chrono::system_clock::time_point time);

}  // namespace cubind
