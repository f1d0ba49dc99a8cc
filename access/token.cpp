#include "access/token.hpp"

#include <openssl/crypto.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/error.hpp"

namespace cubind {
namespace {

constexpr std::string_view kPrefix = "cubind_";
constexpr std::size_t kIdDigits = 16;
constexpr std::size_t kSecretDigits = 64;

bool is_hex(std::string_view text, std::size_t digits) {
  return text.size() == digits && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

/// 64 of them.
std::string random_digits() {
  Digest random;
  if (::getrandom(random.bytes.data(), random.bytes.size(), 0) != static_cast<ssize_t>(random.bytes.size())) {
    throw system_error("token", "getrandom", errno);
  }
  return random.hex();
}

}  // namespace

bool is_token_id(std::string_view text) { return is_hex(text, kIdDigits); }

bool covers(const Scope& scope, std::string_view name) {
  return std::ranges::any_of(scope,
                             [&](const std::string& one) { return one == kEverything || one == name; });
}

std::optional<TokenText> split_token(std::string_view text) {
  if (text.size() != kPrefix.size() + kIdDigits + 1 + kSecretDigits || !text.starts_with(kPrefix)) {
    return std::nullopt;
  }
  const TokenText parts{text.substr(kPrefix.size(), kIdDigits), text.substr(text.size() - kSecretDigits)};
  const bool is_token =
      is_token_id(parts.id) && is_hex(parts.secret, kSecretDigits) && text[kPrefix.size() + kIdDigits] == '_';
  return is_token ? std::optional(parts) : std::nullopt;
}

bool is_secret_of(const Token& token, std::string_view secret) {
  const Digest digest = Digest::of(secret);
  return CRYPTO_memcmp(digest.bytes.data(), token.secret.bytes.data(), digest.bytes.size()) == 0;
}

NewToken issue_token(Token token) {
  const std::string secret = random_digits();
  token.id = random_digits().substr(0, kIdDigits);
  token.secret = Digest::of(secret);
  std::string text = std::string(kPrefix) + token.id + "_" + secret;
  return {std::move(token), std::move(text)};
}

}  // namespace cubind
