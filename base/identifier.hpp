// The characters of C identifiers. Not <cctype>: that asks the locale.
#pragma once

#include <algorithm>
#include <string_view>

namespace cubind {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
/// The underscore is a letter.
constexpr bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

/// Whether the text is a name of C: letters and digits, no digit first.
constexpr bool is_identifier(std::string_view text) {
  return !text.empty() && is_letter(text.front()) &&
         std::ranges::all_of(text, [](char c) { return is_letter(c) || is_digit(c); });
}

}  // namespace cubind
