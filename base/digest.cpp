#include "base/digest.hpp"

#include <openssl/evp.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/hex.hpp"

namespace cubind {
namespace {

void check(int result, const char* operation) {
  if (result != 1) {
    throw Error(ErrorCode::Internal, "sha256", std::string(operation) + " failed");
  }
}

}  // namespace

std::string Digest::hex() const { return cubind::hex(view()); }

bool Digest::is_zero() const noexcept {
  return std::ranges::all_of(bytes, [](std::uint8_t byte) { return byte == 0; });
}

std::string_view Digest::view() const noexcept {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::optional<Digest> Digest::from_hex(std::string_view hex) {
  const auto raw = bytes_from_hex(hex);
  return raw ? from_bytes(*raw) : std::nullopt;
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
