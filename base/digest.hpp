#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace cubind {

/// A SHA-256 digest. Ordered bytewise, which is the order of its hex form.
struct Digest {
  std::array<std::uint8_t, 32> bytes{};

  auto operator<=>(const Digest&) const = default;

  /// 64 lower-case hexadecimal digits.
  std::string hex() const;

  /// All bytes zero: the value of a default-constructed Digest, which stands for "none". SHA-256 yields it
  /// for no known input.
  bool is_zero() const noexcept;

  /// The 32 raw bytes, as they are stored in a blob column or a bytes field.
  std::string_view view() const noexcept;

  /// Exactly 64 hexadecimal digits of either case; anything else is nullopt.
  static std::optional<Digest> from_hex(std::string_view hex);

  /// Exactly 32 raw bytes; anything else is nullopt.
  static std::optional<Digest> from_bytes(std::string_view raw);

  static Digest of(std::string_view bytes);
};

/// SHA-256 of bytes that arrive in pieces. Not thread-safe; movable, not copyable. After finish() the object
/// is as new and may be used again.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  Sha256& update(std::string_view bytes);
  Digest finish();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

}  // namespace cubind

template <>
struct std::hash<cubind::Digest> {
  /// The first bytes of a SHA-256 are as good as any hash of them.
  std::size_t operator()(const cubind::Digest& digest) const noexcept {
    std::size_t value = 0;
    std::memcpy(&value, digest.bytes.data(), sizeof(value));
    return value;
  }
};
