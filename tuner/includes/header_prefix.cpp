#include "tuner/includes/header_prefix.hpp"

#include <algorithm>

#include "base/identifier.hpp"
#include "base/text.hpp"

namespace cubind {
namespace {

bool is_of_word(char c) { return is_letter(c) || is_digit(c); }

// The line without its comments; `in_comment` says whether one is open before it and after it.
std::string without_comments(std::string_view line, bool& in_comment) {
  std::string text;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const std::string_view two = line.substr(i, 2);
    if (in_comment) {
      if (two == "*/") {
        in_comment = false;
        ++i;
      }
    } else if (two == "/*") {
      in_comment = true;
      text += ' ';
      ++i;
    } else if (two == "//") {
      break;
    } else {
      text += line[i];
    }
  }
  return std::string(trimmed(text));
}

// "include" of "#  include <a.h>".
std::string_view directive_name(std::string_view line) {
  const std::string_view text = trimmed(line.substr(1));
  return text.substr(0, std::ranges::find_if_not(text, is_of_word) - text.begin());
}

}  // namespace

bool has_word(std::string_view text, std::string_view word) {
  for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || !is_of_word(text[at - 1])) && (end == text.size() || !is_of_word(text[end]))) {
      return true;
    }
  }
  return false;
}

std::size_t header_prefix(std::string_view source, const std::vector<std::string>& names) {
  std::size_t prefix = 0;
  int depth = 0;
  bool in_comment = false, has_include = false;
  for (std::size_t begin = 0, end = 0; (end = source.find('\n', begin) + 1) != 0; begin = end) {
    const std::string_view line = trimmed(source.substr(begin, end - begin));
    if (line.ends_with('\\')) {
      break;
    }
    const std::string text = without_comments(line, in_comment);
    if (text.empty()) {
      continue;
    }
    const std::string_view name = text.starts_with('#') ? directive_name(text) : std::string_view{};
    const bool is_include = name == "include";
    if (name.empty() || name == "line" || line.find("?\?") != std::string_view::npos ||
        text.find_first_of(is_include ? "'" : "'\"") != std::string::npos ||
        std::ranges::any_of(names, [&](const std::string& one) { return has_word(line, one); })) {
      break;
    }
    depth += name.starts_with("if") ? 1 : name == "endif" ? -1 : 0;
    has_include = has_include || is_include;
    if (has_include && depth == 0 && !in_comment) {
      prefix = end;
    }
  }
  return prefix;
}

}  // namespace cubind
