// A bearer token: who holds it, what the holder may do, and the digest by which its secret is known.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "access/role.hpp"
#include "base/digest.hpp"

namespace cubind {

/// The names that a token is limited to; {"*"}: all.
using Scope = std::vector<std::string>;

inline constexpr const char* kEverything = "*";

/// Whether the scope holds the name, or all.
bool covers(const Scope& scope, std::string_view name);

/// 16 lower-case hexadecimal digits.
bool is_token_id(std::string_view text);

struct Token {
  std::string id = {};
  std::string name = {};  // of the person or the program that holds it
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

/// Absent: it is not of that form. The parts are parts of `text`.
std::optional<TokenText> split_token(std::string_view text);

/// In a time that does not depend on how much of the secret is right.
bool is_secret_of(const Token& token, std::string_view secret);

struct NewToken {
  Token token;
  std::string text;  // "cubind_ID_SECRET", which nothing but its holder keeps
};

/// Gives the token an id and a secret from the system's random numbers. The rest stays as it is.
NewToken issue_token(Token token);

}  // namespace cubind
