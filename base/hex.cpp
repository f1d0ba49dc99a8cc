#include "base/hex.hpp"

namespace cubind {
namespace {

constexpr std::string_view kDigits = "0123456789abcdef";

// Above 15 for anything but a digit.
std::size_t value_of(char c) {
  return kDigits.find(c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c);
}

}  // namespace

std::string hex(std::string_view bytes) {
  std::string digits;
  digits.reserve(2 * bytes.size());
  for (const char byte : bytes) {
    digits += kDigits[static_cast<unsigned char>(byte) >> 4];
    digits += kDigits[static_cast<unsigned char>(byte) & 15];
  }
  return digits;
}

std::optional<std::string> bytes_from_hex(std::string_view digits) {
  if (digits.size() % 2 != 0) {
    return std::nullopt;
  }
  std::string bytes;
  bytes.reserve(digits.size() / 2);
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    const std::size_t high = value_of(digits[i]), low = value_of(digits[i + 1]);
    if (high > 15 || low > 15) {
      return std::nullopt;
    }
    bytes += static_cast<char>(high * 16 + low);
  }
  return bytes;
}

}  // namespace cubind
