// A bearer token: its holder, the holder's rights, and the digest of its secret.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "access/role.hpp"
#include "base/digest.hpp"

namespace cubind {

/// The names to which a token is limited; {"*"}: all.
using Scope = std::vector<std::string>;

inline constexpr const char* kEverything = "*";

/// Whether the scope contains the name, or all names.
bool covers(const Scope& scope, std::string_view name);

/// 16 lower-case hexadecimal digits.
bool is_token_id(std::string_view text);

struct Token {
  std::string id = {};
  std::string name = {};  // of the person or program that holds it
  Digest secret = {};     // SHA-256 of the secret, which has 256 random bits
  RoleSet roles = {};
  Scope namespaces{kEverything};
  Scope device_classes{kEverything};  // labels of the classes that an agent may offer
  std::optional<std::chrono::system_clock::time_point> expires = {};  // absent: never

  bool operator==(const Token&) const = default;
  bool has_expired(std::chrono::system_clock::time_point now) const { return expires && *expires <= now; }
};

/// The two parts of a token's text, "cubind_ID_SECRET".
struct TokenText {
  std::string_view id;
  std::string_view secret;
};

/// Absent if `text` does not have that form. The parts refer to `text`.
std::optional<TokenText> split_token(std::string_view text);

/// Takes the same time however much of the secret is right.
bool is_secret_of(const Token& token, std::string_view secret);

struct NewToken {
  Token token;
  std::string text;  // "cubind_ID_SECRET", which only its holder keeps
};

/// Gives the token a random id and secret; its other members stay unchanged.
NewToken issue_token(Token token);

}  // namespace cubind
