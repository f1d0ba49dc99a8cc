// Base64 (RFC 4648) with its padding.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace cubind {

std::string base64(std::string_view bytes);
/// The inverse; absent if base64() does not print `text` for any bytes.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace cubind
