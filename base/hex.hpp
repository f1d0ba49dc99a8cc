// Bytes as hexadecimal digits.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace cubind {

/// Two lower-case digits for each byte.
std::string hex(std::string_view bytes);
/// Digits of either case; absent for any other text.
std::optional<std::string> bytes_from_hex(std::string_view digits);

}  // namespace cubind
