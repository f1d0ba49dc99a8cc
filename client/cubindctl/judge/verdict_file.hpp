// Verdicts as files, each next to its signature.
#pragma once

#include <optional>
#include <string>

#include "client/cubindctl/terminal/json_output.hpp"
#include "trust/minisign.hpp"
#include "trust/trust_file.hpp"

namespace cubind::ctl {

/// Writes the text to `file` and, if there is a key, its signature to `file`.minisig.
void write_verdict(const std::string& text, const std::string& file, const std::optional<SecretKey>& key);

struct SignedVerdict {
  OutputJson verdict;
  std::string signer;
};

/// Throws InvalidArgument for what is no verdict, and PermissionDenied if no key of the trust file that may
/// sign for its namespace has signed it.
SignedVerdict verify_verdict(const std::string& file, const Trust& trust);

}  // namespace cubind::ctl
