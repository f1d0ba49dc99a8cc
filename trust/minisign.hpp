// Keys and signatures in the formats of minisign, prehashed: Ed25519 over the BLAKE2b-512 digest of a text.
// `minisign` makes the keys and verifies signatures made here.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace cubind {

/// A random name that minisign gives a key. It says which key to look for and proves nothing.
struct KeyId {
  std::array<std::uint8_t, 8> bytes{};
  auto operator<=>(const KeyId&) const = default;
  /// "1FD02E9933C7BA93", as minisign prints it.
  std::string text() const;
};

using SignatureBytes = std::array<std::uint8_t, 64>;

struct Signature {
  KeyId key;
  SignatureBytes bytes{};
  bool operator==(const Signature&) const = default;

  /// "ED", the key's id and the signature: 74 bytes, the second line of a signature file in base64.
  std::string packed() const;
  /// Absent if it does not have that form, or is not prehashed.
  static std::optional<Signature> unpack(std::string_view bytes);
};

class PublicKey {
 public:
  /// The line that minisign prints: "RWSTusczmS7QH5L2...". Throws InvalidArgument at `where`.
  static PublicKey parse(std::string_view line, const std::string& where);

  const KeyId& id() const { return id_; }
  bool operator==(const PublicKey&) const = default;
  /// Whether the key's holder has signed the text.
  bool has_signed(std::string_view text, const Signature& signature) const;
  /// The same without the prehash: minisign signs a file's comment so.
  bool has_signed_plain(std::string_view text, const SignatureBytes& signature) const;

 private:
  friend class SecretKey;
  KeyId id_;
  std::array<std::uint8_t, 32> point_{};
};

class SecretKey {
 public:
  /// A file of `minisign -G -W`. Throws InvalidArgument at `where`, and FailedPrecondition if a password
  /// protects the key.
  static SecretKey parse(std::string_view text, const std::string& where);
  /// Throws like read_file() and parse().
  static SecretKey read(const std::filesystem::path& file);
  ~SecretKey();
  SecretKey(const SecretKey&) = default;
  SecretKey& operator=(const SecretKey&) = default;

  const PublicKey& public_key() const { return public_; }
  /// The same text gives the same signature.
  Signature sign(std::string_view text) const;
  SignatureBytes sign_plain(std::string_view text) const;

 private:
  SecretKey() = default;
  PublicKey public_;
  std::array<std::uint8_t, 32> seed_{};
};

/// A signature file that `minisign -V` reads. The signature also covers `comment`.
std::string print_signature_file(const SecretKey& key, std::string_view text, const std::string& comment);

struct SignatureFile {
  Signature signature;
  std::string comment;
  SignatureBytes of_comment{};  // over signature and comment
};

/// Throws InvalidArgument at `where`.
SignatureFile parse_signature_file(std::string_view file, const std::string& where);
/// Whether the key's holder has signed the text and the comment.
bool has_signed(const PublicKey& key, std::string_view text, const SignatureFile& file);

}  // namespace cubind
