#include "base/key_encoder.hpp"

#include <bit>
#include <cmath>
#include <limits>

#include "base/error.hpp"

namespace cubind {
namespace {

constexpr std::string_view kMagic = "CBK1";

}  // namespace

KeyEncoder::KeyEncoder(std::string_view schema_name, std::uint32_t version) : bytes_(kMagic) {
  put_bytes(schema_name);
  put_big_endian(version, 4);
}

KeyEncoder& KeyEncoder::field(std::string_view tag, std::string_view value) {
  put_head('s', tag);
  put_bytes(value);
  item_done();
  return *this;
}

KeyEncoder& KeyEncoder::field(std::string_view tag, const Digest& value) {
  put_head('d', tag);
  bytes_.append(value.view());
  item_done();
  return *this;
}

KeyEncoder& KeyEncoder::put_bool(std::string_view tag, bool value) {
  put_head('b', tag);
  bytes_ += value ? '\x01' : '\x00';
  item_done();
  return *this;
}

KeyEncoder& KeyEncoder::put_double(std::string_view tag, double value) {
  if (std::isnan(value)) {
    throw Error(ErrorCode::Internal, "key field " + std::string(tag), "NaN has no canonical form");
  }
  put_head('f', tag);
  put_big_endian(std::bit_cast<std::uint64_t>(value == 0.0 ? 0.0 : value), 8);
  item_done();
  return *this;
}

KeyEncoder& KeyEncoder::put_integer(std::string_view tag, std::int64_t value) {
  put_head('i', tag);
  put_big_endian(static_cast<std::uint64_t>(value), 8);
  item_done();
  return *this;
}

void KeyEncoder::check_range(std::string_view tag, std::uint64_t value) const {
  if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    throw Error(ErrorCode::Internal, "key field " + std::string(tag),
                std::to_string(value) + " is above INT64_MAX");
  }
}

KeyEncoder& KeyEncoder::list(std::string_view tag, std::size_t count) {
  put_head('l', tag);
  put_big_endian(count, 8);
  if (count == 0) {
    item_done();
  } else {
    open_.push_back({.is_list = true, .remaining = count});
  }
  return *this;
}

KeyEncoder& KeyEncoder::begin(std::string_view tag) {
  put_head('(', tag);
  open_.push_back({.is_list = false, .remaining = 0});
  return *this;
}

KeyEncoder& KeyEncoder::end() {
  if (open_.empty()) {
    throw Error(ErrorCode::Internal, "key encoder", "end() without begin()");
  }
  if (open_.back().is_list) {
    throw Error(ErrorCode::Internal, "key encoder",
                "a list lacks " + std::to_string(open_.back().remaining) + " of its items");
  }
  open_.pop_back();
  bytes_ += ')';
  item_done();
  return *this;
}

const std::string& KeyEncoder::bytes() const {
  if (!open_.empty()) {
    throw Error(ErrorCode::Internal, "key encoder", "a group or list is still open");
  }
  return bytes_;
}

Digest KeyEncoder::digest() const { return Digest::of(bytes()); }

void KeyEncoder::put_head(char kind, std::string_view tag) {
  bytes_ += kind;
  put_bytes(tag);
}

void KeyEncoder::put_bytes(std::string_view value) {
  put_big_endian(value.size(), 8);
  bytes_.append(value);
}

void KeyEncoder::put_big_endian(std::uint64_t value, int octets) {
  for (int shift = 8 * (octets - 1); shift >= 0; shift -= 8) {
    bytes_ += static_cast<char>(static_cast<unsigned char>(value >> shift));
  }
}

// A complete item may complete its list, which is then an item of the enclosing list or group.
void KeyEncoder::item_done() {
  while (!open_.empty() && open_.back().is_list && --open_.back().remaining == 0) {
    open_.pop_back();
  }
}

}  // namespace cubind
