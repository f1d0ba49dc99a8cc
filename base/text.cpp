#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

namespace cubind {
namespace {

constexpr std::size_t kLongestQuote = 80;
constexpr std::size_t kMostListed = 8;

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') {
      c = static_cast<char>(c - 'A' + 'a');
    }
  }
  return result;
}

void append_unit(std::string& out, unsigned unit) {
  static constexpr char kDigits[] = "0123456789abcdef";
  out += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) {
    out += kDigits[(unit >> shift) & 15];
  }
}

// As in JSON: above ffff two surrogates.
void append_code(std::string& out, unsigned code) {
  if (code > 0xffff) {
    append_unit(out, 0xd7c0 + (code >> 10));
    code = 0xdc00 + (code & 0x3ff);
  }
  append_unit(out, code);
}

struct CodeRange {
  unsigned first, last;
};

// Characters without a shape of their own, which hide or reorder what stands next to them: Unicode's
// categories Cc, Cf, Zl and Zp (16.0).
constexpr std::array<CodeRange, 23> kUnseen = {{
    {0x0, 0x1f},        {0x7f, 0x9f},       {0xad, 0xad},       {0x600, 0x605},     {0x61c, 0x61c},
    {0x6dd, 0x6dd},     {0x70f, 0x70f},     {0x890, 0x891},     {0x8e2, 0x8e2},     {0x180e, 0x180e},
    {0x200b, 0x200f},   {0x2028, 0x202e},   {0x2060, 0x2064},   {0x2066, 0x206f},   {0xfeff, 0xfeff},
    {0xfff9, 0xfffb},   {0x110bd, 0x110bd}, {0x110cd, 0x110cd}, {0x13430, 0x1343f}, {0x1bca0, 0x1bca3},
    {0x1d173, 0x1d17a}, {0xe0001, 0xe0001}, {0xe0020, 0xe007f},
}};

bool is_unseen(unsigned code) {
  if (code >= 0x20 && code < 0x7f) {
    return false;  // nearly all text
  }
  const auto range = std::ranges::lower_bound(kUnseen, code, {}, &CodeRange::last);
  return range != kUnseen.end() && range->first <= code;
}

// Of a valid sequence, or of a single byte.
unsigned code_of(std::string_view sequence) {
  const unsigned first = static_cast<unsigned char>(sequence.front());
  unsigned code = sequence.size() == 1 ? first : first & (0x7fU >> sequence.size());
  for (const char c : sequence.substr(1)) {
    code = code << 6 | (static_cast<unsigned char>(c) & 0x3fU);
  }
  return code;
}

void append_escaped(std::string& out, char c) {
  const auto byte = static_cast<unsigned char>(c);
  if (c == '"' || c == '\\') {
    out += '\\';
    out += c;
  } else if (c == '\n') {
    out += "\\n";
  } else if (c == '\t') {
    out += "\\t";
  } else if (byte < 0x20 || byte == 0x7f) {
    append_code(out, byte);
  } else {
    out += c;
  }
}

// The length of the sequence at the text's beginning; 0 if it is not UTF-8 (RFC 3629, table 3-7 of Unicode).
std::size_t sequence_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const unsigned first = byte(0);
  if (first < 0x80) {
    return 1;
  }
  // The second byte is limited where a shorter sequence, a surrogate or a number above 10ffff would come out.
  const unsigned low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  const unsigned high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  const std::size_t length = first < 0xc2 || first > 0xf4 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  if (length == 0 || byte(1) < low || byte(1) > high) {
    return 0;
  }
  for (std::size_t i = 2; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) {
      return 0;
    }
  }
  return length;
}

// The candidates that begin with the word, whatever the case; none of a word that is too short to say much.
std::vector<std::string> continuations(std::string_view word, std::span<const std::string> candidates) {
  constexpr std::size_t kLeast = 3;
  std::vector<std::string> found;
  for (const std::string& candidate : candidates) {
    if (word.size() >= kLeast && lower(candidate).starts_with(lower(word))) {
      found.push_back(candidate);
    }
  }
  return found;
}

// Quoted, at most kMostListed of them.
std::string listed(std::span<const std::string> words, std::string_view last_separator) {
  std::string text;
  const std::size_t count = std::min(words.size(), kMostListed);
  for (std::size_t i = 0; i < count; ++i) {
    text += i == 0 ? "" : i + 1 == words.size() ? last_separator : ", ";
    text += quoted(words[i]);
  }
  return text + (words.size() > count ? ", ..." : "");
}

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

std::optional<std::string> nearest_word(std::string_view word, std::span<const std::string> candidates) {
  constexpr std::size_t kLongestWord = 256;  // the distance costs the product of the lengths
  if (word.size() > kLongestWord) {
    return std::nullopt;
  }
  const std::string wanted = lower(word);
  const std::string* best = nullptr;
  std::size_t best_distance = 0;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kLongestWord) {
      continue;
    }
    const std::size_t distance = edit_distance(wanted, lower(candidate));
    const std::size_t allowed = std::max<std::size_t>(1, std::max(word.size(), candidate.size()) / 3);
    // One edit turns any one-letter name into any other: that is not a slip.
    if (distance > allowed || distance >= std::max(word.size(), candidate.size())) {
      continue;
    }
    if (best == nullptr || distance < best_distance) {
      best = &candidate;
      best_distance = distance;
    }
  }
  return best == nullptr ? std::nullopt : std::optional<std::string>(*best);
}

std::string suggestion(std::string_view word, std::span<const std::string> candidates) {
  std::vector<std::string> meant = continuations(word, candidates);
  if (const auto nearest = nearest_word(word, candidates); nearest && meant.empty()) {
    meant.push_back(*nearest);
  }
  if (!meant.empty()) {
    return ", did you mean " + listed(meant, " or ") + "?";
  }
  return candidates.empty() ? "" : " (known: " + listed(candidates, ", ") + ")";
}

std::string quoted(std::string_view text) {
  const std::string shown = cut_utf8(text, kLongestQuote);
  std::string result = "\"";
  for (const char c : shown) {
    append_escaped(result, c);
  }
  return result + (shown.size() < text.size() ? "...\"" : "\"");
}

std::string cut_utf8(std::string_view text, std::size_t max_bytes) {
  std::size_t kept = std::min(text.size(), max_bytes);
  while (kept < text.size() && kept > 0 && (static_cast<unsigned char>(text[kept]) & 0xc0) == 0x80) {
    --kept;
  }
  return std::string(text.substr(0, kept));
}

std::string valid_utf8(std::string text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = sequence_length(std::string_view(text).substr(at));
    if (length == 0) {
      text[at] = '?';
    }
    at += std::max<std::size_t>(length, 1);
  }
  return text;
}

std::string printable(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = sequence_length(text.substr(at));
    const std::string_view sequence = text.substr(at, std::max<std::size_t>(length, 1));
    const unsigned code = code_of(sequence);
    const bool is_line_end = code == '\n' || (code == '\r' && text.substr(at + 1, 1) == "\n");
    if ((length == 0 || is_unseen(code)) && !is_line_end && code != '\t') {
      append_code(result, code);
    } else {
      result += sequence;
    }
    at += sequence.size();
  }
  return result;
}

std::string one_line(std::string text) {
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < 0x20 || c == 0x7f; }, ' ');
  return text;
}

std::string counted(std::uint64_t count, std::string_view noun) {
  return std::to_string(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const auto first = text.find_first_not_of(kBlanks);
  return first == std::string_view::npos ? std::string_view{}
                                         : text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

}  // namespace cubind
