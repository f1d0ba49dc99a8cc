#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace cubind {

/// Levenshtein distance in bytes.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The candidate nearest to `word`, if one is near enough (a third of the longer one's length, at least one
/// edit) that a typing error explains it; case alone counts as no edit. At a tie the earlier one.
std::optional<std::string> nearest_word(std::string_view word, std::span<const std::string> candidates);

/// `, did you mean "VECTOR"?`: what begins with the word, else what is nearest; else ` (known: "N", "ROWS")`.
/// At most eight of them. Empty without candidates. To be appended to a message.
std::string suggestion(std::string_view word, std::span<const std::string> candidates);

/// The text in double quotes, with control characters and quotes escaped as in JSON, cut after 80 bytes with
/// "...".
std::string quoted(std::string_view text);
/// Argument-dependent lookup also finds std::quoted where <iomanip> is included; these keep it from matching
/// better.
inline std::string quoted(const std::string& text) { return quoted(std::string_view(text)); }
inline std::string quoted(std::string& text) { return quoted(std::string_view(text)); }
inline std::string quoted(const char* text) { return quoted(std::string_view(text)); }

/// The text, at most `max_bytes` of it, no UTF-8 sequence cut in two: text in a protobuf string must be
/// valid.
std::string cut_utf8(std::string_view text, std::size_t max_bytes);

/// The text with a '?' for every byte that is not part of UTF-8. For text from others (a compiler, a library,
/// a process's stderr) that goes into a message: a protobuf string with such a byte is written and never
/// read.
std::string valid_utf8(std::string text);

/// Control and format characters but line ends and tabs, and bytes that are not UTF-8, as JSON writes them
/// ("\u001b", "\u202e"): what others wrote moves no cursor of a terminal and reads in its own order. A
/// carriage return before a line end stays.
std::string printable(std::string_view text);

/// Control characters become blanks: what goes into a line of a terminal or of a log.
std::string one_line(std::string text);

/// "1 record", "2 records".
std::string counted(std::uint64_t count, std::string_view noun);

/// The text without leading and trailing blanks, tabs and line ends.
std::string_view trimmed(std::string_view text);

/// Strings or numbers as one text.
template <typename Parts>
std::string join(const Parts& parts, std::string_view separator) {
  std::string result;
  bool first = true;
  for (const auto& part : parts) {
    if (!std::exchange(first, false)) {
      result += separator;
    }
    if constexpr (std::is_arithmetic_v<std::remove_cvref_t<decltype(part)>>) {
      result += std::to_string(part);
    } else {
      result += part;
    }
  }
  return result;
}

/// The text with each `from` replaced by `to`; `from` is not empty.
std::string replaced(std::string text, std::string_view from, std::string_view to);

}  // namespace cubind
