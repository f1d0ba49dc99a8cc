// The file that lists the tokens that a daemon accepts.
//
//   {"version": 1,
//    "tokens": [{"id": "9f3c2ab811d04e57", "name": "alice", "secret_sha256": "64 digits",
//                "roles": ["tuner"], "namespaces": ["*"], "device_classes": ["*"],
//                "expires": "2027-03-01T00:00:00Z"}]}
//
// It contains no secret but decides who is an admin, so only its owner may write to it. `expires` is
// optional. All other members are required, so that no mistake gives a token all namespaces.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "access/token.hpp"

namespace cubind {

/// `file` is for messages: `tokens.json /tokens/0/roles/1: "tunr" is not a role, did you mean "tuner"?`.
/// Throws InvalidArgument.
std::vector<Token> parse_tokens(std::string_view text, const std::string& file);
std::string print_tokens(const std::vector<Token>& tokens);

/// Throws like read_file() and parse_tokens(), and FailedPrecondition if another user could have written it:
/// its owner is neither this user nor root, or group or others may write to it.
std::vector<Token> read_token_file(const std::filesystem::path& file);
/// Replaces the file, or the one that a link leads to, atomically, with mode 0600. Throws like parse_tokens()
/// for tokens that it would refuse.
void write_token_file(const std::filesystem::path& file, const std::vector<Token>& tokens);

}  // namespace cubind
