#include "base/digest.hpp"

#include <openssl/evp.h>

#include <algorithm>

#include "base/error.hpp"

namespace cubind {
namespace {

// -1 for anything but a hexadecimal digit.
int hex_value(char c) {
  if (c >= '0' && c <= '9') {
    return c - '0';
  }
  if (c >= 'a' && c <= 'f') {
    return c - 'a' + 10;
  }
  if (c >= 'A' && c <= 'F') {
    return c - 'A' + 10;
  }
  return -1;
}

void check(int result, const char* operation) {
  if (result != 1) {
    throw Error(ErrorCode::Internal, "sha256", std::string(operation) + " failed");
  }
}

}  // namespace

std::string Digest::hex() const {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const std::uint8_t byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

bool Digest::is_zero() const noexcept {
  return std::ranges::all_of(bytes, [](std::uint8_t byte) { return byte == 0; });
}

std::string_view Digest::view() const noexcept {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::optional<Digest> Digest::from_hex(std::string_view hex) {
  Digest digest;
  if (hex.size() != 2 * digest.bytes.size()) {
    return std::nullopt;
  }
  for (std::size_t i = 0; i < digest.bytes.size(); ++i) {
    const int high = hex_value(hex[2 * i]);
    const int low = hex_value(hex[2 * i + 1]);
    if (high < 0 || low < 0) {
      return std::nullopt;
    }
    digest.bytes[i] = static_cast<std::uint8_t>(high * 16 + low);
  }
  return digest;
}

std::optional<Digest> Digest::from_bytes(std::string_view raw) {
  Digest digest;
  if (raw.size() != digest.bytes.size()) {
    return std::nullopt;
  }
  std::memcpy(digest.bytes.data(), raw.data(), raw.size());
  return digest;
}

Digest Digest::of(std::string_view bytes) { return Sha256().update(bytes).finish(); }

struct Sha256::Context {
  // Fetched once per process: EVP_sha256() alone makes OpenSSL 3 look the algorithm up again for every
  // digest.
  static const EVP_MD* algorithm() {
    static const EVP_MD* const fetched = EVP_MD_fetch(nullptr, "SHA256", nullptr);
    return fetched;
  }

  Context() : evp(EVP_MD_CTX_new()) {
    if (evp == nullptr) {
      throw Error(ErrorCode::ResourceExhausted, "sha256", "out of memory");
    }
    if (EVP_DigestInit_ex(evp, algorithm(), nullptr) != 1) {
      EVP_MD_CTX_free(evp);
      throw Error(ErrorCode::Internal, "sha256", "OpenSSL offers no SHA-256");
    }
  }
  ~Context() { EVP_MD_CTX_free(evp); }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  EVP_MD_CTX* evp;
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

Sha256& Sha256::update(std::string_view bytes) {
  check(EVP_DigestUpdate(context_->evp, bytes.data(), bytes.size()), "EVP_DigestUpdate");
  return *this;
}

Digest Sha256::finish() {
  Digest digest;
  unsigned size = 0;
  check(EVP_DigestFinal_ex(context_->evp, digest.bytes.data(), &size), "EVP_DigestFinal_ex");
  check(EVP_DigestInit_ex(context_->evp, Context::algorithm(), nullptr), "EVP_DigestInit_ex");
  return digest;
}

}  // namespace cubind
