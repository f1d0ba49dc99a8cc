#include "trust/minisign.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/text.hpp"
#include "trust/base64.hpp"

namespace cubind {
namespace {

constexpr std::string_view kKeyKind = "Ed", kPrehashed = "ED", kPlain{"\0\0", 2};
constexpr std::string_view kUntrusted = "untrusted comment: ", kTrusted = "trusted comment: ";
constexpr std::size_t kSaltAndLimits = 32 + 8 + 8;
constexpr std::uint64_t kMaxKeyFile = 4096;
constexpr const char* kOperation = "Ed25519";

using KeyPtr = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using ContextPtr = std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)>;

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

template <std::size_t Size>
std::string_view view_of(const std::array<std::uint8_t, Size>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), Size};
}

/// The next bytes of `from`, which has them.
template <std::size_t Size>
void take(std::string_view& from, std::array<std::uint8_t, Size>& to) {
  std::copy_n(from.begin(), Size, to.begin());
  from.remove_prefix(Size);
}

void check(bool ok) {
  if (!ok) {
    throw Error(ErrorCode::Internal, kOperation, "OpenSSL failed");
  }
}

std::array<std::uint8_t, 64> prehash(std::string_view text) {
  std::array<std::uint8_t, 64> digest{};
  unsigned size = digest.size();
  check(EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_blake2b512(), nullptr) == 1);
  return digest;
}

SignatureBytes sign_bytes(const std::array<std::uint8_t, 32>& seed, std::string_view bytes) {
  const KeyPtr key(EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, seed.data(), seed.size()),
                   EVP_PKEY_free);
  const ContextPtr context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  SignatureBytes signature{};
  std::size_t size = signature.size();
  check(key && context && EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1 &&
        EVP_DigestSign(context.get(), signature.data(), &size, bytes_of(bytes), bytes.size()) == 1);
  return signature;
}

bool verify_bytes(const std::array<std::uint8_t, 32>& point, std::string_view bytes,
                  const SignatureBytes& signature) {
  const KeyPtr key(EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, point.data(), point.size()),
                   EVP_PKEY_free);
  const ContextPtr context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  return key && context && EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1 &&
         EVP_DigestVerify(context.get(), signature.data(), signature.size(), bytes_of(bytes), bytes.size()) ==
             1;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

/// What the signature of the comment covers.
std::string commented(const Signature& signature, std::string_view comment) {
  return std::string(view_of(signature.bytes)) + std::string(comment);
}

[[noreturn]] void refuse(const std::string& where, const std::string& cause) {
  throw Error(ErrorCode::InvalidArgument, where, cause);
}

}  // namespace

std::string KeyId::text() const {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  std::string text;
  for (auto byte = bytes.rbegin(); byte != bytes.rend(); ++byte) {
    text += kDigits[*byte >> 4];
    text += kDigits[*byte & 15];
  }
  return text;
}

std::string Signature::packed() const {
  return std::string(kPrehashed) + std::string(view_of(key.bytes)) + std::string(view_of(bytes));
}

std::optional<Signature> Signature::unpack(std::string_view packed) {
  Signature signature;
  if (packed.size() != kPrehashed.size() + signature.key.bytes.size() + signature.bytes.size() ||
      !packed.starts_with(kPrehashed)) {
    return std::nullopt;
  }
  packed.remove_prefix(kPrehashed.size());
  take(packed, signature.key.bytes);
  take(packed, signature.bytes);
  return signature;
}

PublicKey PublicKey::parse(std::string_view line, const std::string& where) {
  const auto decoded = from_base64(line);
  PublicKey key;
  const std::size_t size = kKeyKind.size() + key.id_.bytes.size() + key.point_.size();
  if (!decoded || decoded->size() != size || !decoded->starts_with(kKeyKind)) {
    refuse(where, quoted(line) + " is not a public key of minisign, such as the second line of minisign.pub");
  }
  std::string_view rest = *decoded;
  rest.remove_prefix(kKeyKind.size());
  take(rest, key.id_.bytes);
  take(rest, key.point_);
  return key;
}

bool PublicKey::has_signed(std::string_view text, const Signature& signature) const {
  return signature.key == id_ && verify_bytes(point_, view_of(prehash(text)), signature.bytes);
}

bool PublicKey::has_signed_plain(std::string_view text, const SignatureBytes& signature) const {
  return verify_bytes(point_, text, signature);
}

SecretKey SecretKey::parse(std::string_view text, const std::string& where) {
  const auto lines = lines_of(text);
  const auto decoded =
      lines.size() >= 2 && lines[0].starts_with(kUntrusted) ? from_base64(lines[1]) : std::nullopt;
  SecretKey key;
  constexpr std::size_t kHead = 6, kChecksum = 32;
  const std::size_t size = kHead + kSaltAndLimits + 8 + 64 + kChecksum;
  if (!decoded || decoded->size() != size || !decoded->starts_with(kKeyKind)) {
    refuse(where, "is not a secret key of minisign: `minisign -G -W -s FILE -p FILE.pub` makes one");
  }
  std::string_view rest = *decoded;
  if (rest.substr(2, 2) != kPlain) {
    throw Error(ErrorCode::FailedPrecondition, where,
                "a password protects this key, and cubind asks for none: sign with a key of `minisign -G "
                "-W`, or take the password off with `minisign -C -W -s FILE`");
  }
  rest.remove_prefix(kHead + kSaltAndLimits);
  take(rest, key.public_.id_.bytes);
  take(rest, key.seed_);
  take(rest, key.public_.point_);
  const Signature probe = key.sign("");
  if (!key.public_.has_signed("", probe)) {
    refuse(where, "is damaged: its secret and its public half do not belong together");
  }
  return key;
}

SecretKey SecretKey::read(const std::filesystem::path& file) {
  std::string text = read_file(file, kMaxKeyFile);
  SecretKey key = parse(text, file.string());
  OPENSSL_cleanse(text.data(), text.size());
  return key;
}

SecretKey::~SecretKey() { OPENSSL_cleanse(seed_.data(), seed_.size()); }

Signature SecretKey::sign(std::string_view text) const {
  return {public_.id_, sign_bytes(seed_, view_of(prehash(text)))};
}

SignatureBytes SecretKey::sign_plain(std::string_view text) const { return sign_bytes(seed_, text); }

std::string print_signature_file(const SecretKey& key, std::string_view text, const std::string& comment) {
  const Signature signature = key.sign(text);
  return std::string(kUntrusted) + "signature by key " + signature.key.text() + "\n" +
         base64(signature.packed()) + "\n" + std::string(kTrusted) + comment + "\n" +
         base64(view_of(key.sign_plain(commented(signature, comment)))) + "\n";
}

SignatureFile parse_signature_file(std::string_view file, const std::string& where) {
  const auto lines = lines_of(file);
  if (lines.size() < 4 || !lines[0].starts_with(kUntrusted) || !lines[2].starts_with(kTrusted)) {
    refuse(where, "is not a signature file of minisign: four lines, the third a trusted comment");
  }
  const auto signature = Signature::unpack(from_base64(lines[1]).value_or(""));
  const auto global = from_base64(lines[3]);
  SignatureFile read;
  if (!signature || !global || global->size() != read.of_comment.size()) {
    refuse(where, "holds no prehashed signature of minisign");
  }
  read.signature = *signature;
  read.comment = lines[2].substr(kTrusted.size());
  std::copy(global->begin(), global->end(), read.of_comment.begin());
  return read;
}

bool has_signed(const PublicKey& key, std::string_view text, const SignatureFile& file) {
  return key.has_signed(text, file.signature) &&
         key.has_signed_plain(commented(file.signature, file.comment), file.of_comment);
}

}  // namespace cubind
