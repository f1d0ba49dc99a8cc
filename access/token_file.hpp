// The file that lists the tokens that a daemon accepts.
//
//   {"version": 1,
//    "tokens": [{"id": "9f3c2ab811d04e57", "name": "alice", "secret_sha256": "64 digits",
//                "roles": ["tuner"], "namespaces": ["*"], "device_classes": ["*"],
//                "expires": "2027-03-01T00:00:00Z"}]}
//
// It has no secret, and still decides who is an admin: only its owner may write to it. `expires` may be left
// out. Each other member is needed, so that no slip gives a token all namespaces.
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

/// Throws as read_file() and parse_tokens() do, and FailedPrecondition if another user could have written it:
/// it belongs to another user than this one and root, or group or others may write to it.
std::vector<Token> read_token_file(const std::filesystem::path& file);
/// Replaces the file at once, with mode 0600.
void write_token_file(const std::filesystem::path& file, const std::vector<Token>& tokens);

}  // namespace cubind
