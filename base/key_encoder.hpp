#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/digest.hpp"

namespace cubind {

/// Canonical bytes of a key. The full key is stored with its SHA-256 and compared on read, so two different
/// sequences of fields must never give the same bytes. The format is a prefix code (every item starts with a
/// kind byte and says how long it is), in which a reader could decode the calls that wrote it:
///
///   key     = "CBK1" name version item*
///   name    = bytes                        ; the schema's name, for example "artifact"
///   version = u32                          ; the schema's version; a changed meaning needs a new one
///   item    = "s" tag bytes                ; text or raw bytes
///           | "i" tag i64                  ; any integer
///           | "b" tag ( %x00 / %x01 )      ; a boolean
///           | "f" tag u64                  ; a double: its IEEE 754 bits, -0.0 written as 0.0, never a NaN
///           | "d" tag 32OCTET              ; a digest
///           | "l" tag u64 item{that many}  ; a list; an item is a field, a list or a group, counted once
///           | "(" tag item* ")"            ; a group
///   tag     = bytes
///   bytes   = u64 OCTET{that many}
///   u32 u64 i64 = big-endian, i64 in two's complement
///
/// Nothing is sorted here: a caller whose fields have no order of their own sorts them first. Golden tests
/// pin the bytes. Not thread-safe.
class KeyEncoder {
 public:
  KeyEncoder(std::string_view schema_name, std::uint32_t version);

  KeyEncoder& field(std::string_view tag, std::string_view value);
  /// Without this overload a string literal would convert to bool.
  KeyEncoder& field(std::string_view tag, const char* value) { return field(tag, std::string_view(value)); }
  KeyEncoder& field(std::string_view tag, const std::string& value) {
    return field(tag, std::string_view(value));
  }
  KeyEncoder& field(std::string_view tag, const Digest& value);
  KeyEncoder& field(std::string_view tag, std::same_as<bool> auto value) { return put_bool(tag, value); }
  KeyEncoder& field(std::string_view tag, std::floating_point auto value) {
    return put_double(tag, static_cast<double>(value));
  }
  /// Throws Internal for an unsigned value above INT64_MAX.
  template <std::integral Integer>
    requires(!std::same_as<Integer, bool>)
  KeyEncoder& field(std::string_view tag, Integer value) {
    if constexpr (std::unsigned_integral<Integer> && sizeof(Integer) >= sizeof(std::int64_t)) {
      check_range(tag, value);
    }
    return put_integer(tag, static_cast<std::int64_t>(value));
  }

  /// A list of exactly `count` items, which are the next `count` fields, lists or groups at this level; it
  /// closes by itself after the last.
  KeyEncoder& list(std::string_view tag, std::size_t count);

  /// A group of any number of items. Throws Internal from end() if no group is open or a list in it is not
  /// full.
  KeyEncoder& begin(std::string_view tag);
  KeyEncoder& end();

  /// The full key and its SHA-256. Throw Internal while a group or list is open.
  const std::string& bytes() const;
  Digest digest() const;

 private:
  KeyEncoder& put_bool(std::string_view tag, bool value);
  KeyEncoder& put_double(std::string_view tag, double value);
  KeyEncoder& put_integer(std::string_view tag, std::int64_t value);
  void check_range(std::string_view tag, std::uint64_t value) const;

  void put_head(char kind, std::string_view tag);
  void put_bytes(std::string_view value);
  void put_big_endian(std::uint64_t value, int octets);
  void item_done();

  struct Open {
    bool is_list;
    std::size_t remaining;  // of a list; always above zero while it is open
  };
  std::string bytes_;
  std::vector<Open> open_;
};

}  // namespace cubind
