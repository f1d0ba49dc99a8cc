#include "tuner/includes/include_scan.hpp"

#include <algorithm>
#include <utility>

#include "base/identifier.hpp"
#include "base/text.hpp"

namespace cubind {
namespace {

bool is_of_identifier(char c) { return is_letter(c) || is_digit(c) || c == '$'; }

// Walks over a text as translation phase 2 leaves it: without a backslash before a line end. '\0' past
// the end.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) { skip_splices(); }

  bool at_end() const { return position_ >= text_.size(); }
  std::size_t position() const { return position_; }
  std::size_t line() const { return line_; }
  char peek() const { return at_end() ? '\0' : text_[position_]; }

  char peek_second() const {
    Cursor next = *this;
    next.advance();
    return next.peek();
  }

  void advance() {
    if (at_end()) {
      return;
    }
    line_ += text_[position_] == '\n' ? 1 : 0;
    ++position_;
    skip_splices();
  }

  // Over characters that neither end a line nor begin a splice.
  void advance_within_line(std::size_t count) {
    position_ += count;
    skip_splices();
  }

  // Raw string literals are read as they stand: line continuations in them are text.
  void advance_raw(std::size_t count) {
    for (; count > 0 && !at_end(); --count, ++position_) {
      line_ += text_[position_] == '\n' ? 1 : 0;
    }
  }
  std::string_view rest() const { return text_.substr(position_); }
  void end_raw() { skip_splices(); }

 private:
  void skip_splices() {
    while (position_ < text_.size() && text_[position_] == '\\') {
      const std::string_view after = text_.substr(position_ + 1, 2);
      const std::size_t length = after.starts_with('\n') ? 2 : after == "\r\n" ? 3 : 0;
      if (length == 0) {
        return;
      }
      position_ += length;
      ++line_;
    }
  }

  std::string_view text_;
  std::size_t position_ = 0;
  std::size_t line_ = 1;
};

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text), cursor_(text) {}

  IncludeScan run() {
    find_trigraphs();
    while (!cursor_.at_end()) {
      scan_line();
    }
    return std::move(scan_);
  }

 private:
  void find_trigraphs() {
    const std::size_t found = std::min(text_.find("?\?="), text_.find("?\?/"));
    if (found != std::string_view::npos) {
      const auto lines_before = std::ranges::count(text_.substr(0, found), '\n');
      scan_.trigraph_line = static_cast<std::size_t>(lines_before) + 1;
    }
  }

  // One logical line, its end included.
  void scan_line() {
    skip_blanks();
    const bool hash = cursor_.peek() == '#';
    const bool digraph = cursor_.peek() == '%' && cursor_.peek_second() == ':';
    if (hash || digraph) {
      cursor_.advance();
      if (digraph) {
        cursor_.advance();
      }
      scan_directive();
    }
    while (!cursor_.at_end() && cursor_.peek() != '\n') {
      skip_token();
    }
    in_directive_ = in_condition_ = false;
    cursor_.advance();
  }

  void scan_directive() {
    in_directive_ = true;
    skip_blanks();
    const std::string name = read_identifier();
    if (name == "include") {
      read_reference(IncludeReference::Kind::Include, true);
    } else if (name == "include_next") {
      read_reference(IncludeReference::Kind::IncludeNext, true);
    } else if (name == "embed") {
      read_reference(IncludeReference::Kind::Embed, true);
    } else if (name == "define") {
      read_macro();
    } else {
      in_condition_ = name == "if" || name == "elif";
    }
  }

  // Macros with several parameters and those with other values name no file.
  void read_macro() {
    skip_blanks();
    FileMacro macro;
    macro.name = read_identifier();
    if (macro.name.empty()) {
      return;
    }
    if (cursor_.peek() == '(') {
      macro.parameter = read_argument();
      if (!is_identifier(macro.parameter)) {
        return;
      }
    }
    skip_blanks();
    const char open = cursor_.peek();
    if (open == '"' || open == '<') {
      macro.value = read_quoted(open);
    } else if (!is_digit(open)) {
      macro.value = read_identifier();
    }
    if (!macro.value.empty()) {
      scan_.macros.push_back(std::move(macro));
    }
  }

  // What is in parentheses, within the line and without blanks at its ends.
  std::string read_argument() {
    std::string text;
    cursor_.advance();
    while (!cursor_.at_end() && cursor_.peek() != '\n' && cursor_.peek() != ')') {
      text += cursor_.peek();
      cursor_.advance();
    }
    cursor_.advance();
    return std::string(trimmed(text));
  }

  // "name" or <name> with its quotes, within the line; empty if it does not end there.
  std::string read_quoted(char open) {
    const char close = open == '<' ? '>' : '"';
    std::string text(1, open);
    cursor_.advance();
    while (!cursor_.at_end() && cursor_.peek() != '\n') {
      text += cursor_.peek();
      cursor_.advance();
      if (text.back() == close) {
        return text;
      }
    }
    return {};
  }

  // The name behind #include or `__has_include(`. A macro counts if it decides which file is searched.
  void read_reference(IncludeReference::Kind kind, bool keep_macro) {
    skip_blanks();
    IncludeReference reference;
    reference.kind = kind;
    reference.line = cursor_.line();
    const char open = cursor_.peek();
    if (open != '"' && open != '<') {
      reference.by_macro = true;
      reference.name = read_identifier();
      skip_blanks();
      if (cursor_.peek() == '(') {
        reference.argument = read_argument();
      }
      if (keep_macro) {
        scan_.references.push_back(std::move(reference));
      }
      return;
    }
    const char close = open == '<' ? '>' : '"';
    reference.angled = open == '<';
    cursor_.advance();
    reference.begin = cursor_.position();
    while (!cursor_.at_end() && cursor_.peek() != close && cursor_.peek() != '\n') {
      reference.name += cursor_.peek();
      cursor_.advance();
    }
    reference.end = cursor_.position();
    if (cursor_.peek() == close) {
      cursor_.advance();
    }
    scan_.references.push_back(std::move(reference));
  }

  std::string read_identifier() {
    std::string word;
    while (is_of_identifier(cursor_.peek())) {
      const std::string_view rest = cursor_.rest();
      const auto end = std::ranges::find_if_not(rest, is_of_identifier);
      const auto part = rest.substr(0, static_cast<std::size_t>(end - rest.begin()));
      word += part;
      cursor_.advance_within_line(part.size());
    }
    return word;
  }

  // White space within the line, and comments, which may span lines.
  void skip_blanks() {
    while (!cursor_.at_end()) {
      const char c = cursor_.peek();
      if (c == '/' && cursor_.peek_second() == '*') {
        skip_block_comment();
      } else if (c == '/' && cursor_.peek_second() == '/') {
        skip_to_line_end();
      } else if (c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f') {
        cursor_.advance();
      } else {
        return;
      }
    }
  }

  void skip_to_line_end() {
    while (!cursor_.at_end() && cursor_.peek() != '\n') {
      cursor_.advance();
    }
  }

  void skip_block_comment() {
    cursor_.advance();
    cursor_.advance();
    while (!cursor_.at_end()) {
      const bool closes = cursor_.peek() == '*' && cursor_.peek_second() == '/';
      cursor_.advance();
      if (closes) {
        cursor_.advance();
        return;
      }
    }
  }

  void skip_token() {
    const char c = cursor_.peek();
    if (c == '/' && (cursor_.peek_second() == '*' || cursor_.peek_second() == '/')) {
      skip_blanks();
    } else if (c == '"' || c == '\'') {
      skip_quoted(c);
    } else if (is_digit(c) || (c == '.' && is_digit(cursor_.peek_second()))) {
      skip_number();
    } else if (is_of_identifier(c)) {
      skip_word();
    } else {
      cursor_.advance();
    }
  }

  // Ends at the line's end at the latest: an apostrophe in a skipped group opens nothing.
  void skip_quoted(char quote) {
    cursor_.advance();
    while (!cursor_.at_end() && cursor_.peek() != '\n') {
      const char c = cursor_.peek();
      cursor_.advance();
      if (c == quote) {
        return;
      }
      if (c == '\\' && cursor_.peek() != '\n') {
        cursor_.advance();
      }
    }
  }

  // A preprocessing number: 1'000, 0x1p-3, 1.0e+5f.
  void skip_number() {
    char last = '\0';
    while (!cursor_.at_end()) {
      const char c = cursor_.peek();
      const bool exponent =
          (c == '+' || c == '-') && (last == 'e' || last == 'E' || last == 'p' || last == 'P');
      const bool separator = c == '\'' && is_of_identifier(cursor_.peek_second());
      if (!is_of_identifier(c) && c != '.' && !exponent && !separator) {
        return;
      }
      last = c;
      cursor_.advance();
    }
  }

  void skip_word() {
    const std::string word = read_identifier();
    if (cursor_.peek() == '"' &&
        (word == "R" || word == "LR" || word == "uR" || word == "UR" || word == "u8R")) {
      skip_raw_string();
    } else if (in_directive_ && (word == "__has_include" || word == "__has_include_next")) {
      skip_blanks();
      if (cursor_.peek() == '(') {
        cursor_.advance();
        read_reference(IncludeReference::Kind::HasInclude, in_condition_);
      }
    }
  }

  void skip_raw_string() {
    cursor_.advance_raw(1);
    const std::size_t open = cursor_.rest().find('(');
    const std::string_view delimiter = cursor_.rest().substr(0, open);
    constexpr std::size_t kLongestDelimiter = 16;
    if (open > kLongestDelimiter || delimiter.find_first_of(" )\\\t\v\f\n\"") != std::string_view::npos) {
      cursor_.end_raw();
      return;  // no raw string after all
    }
    const std::string closing = ")" + std::string(delimiter) + "\"";
    const std::size_t close = cursor_.rest().find(closing, open);
    cursor_.advance_raw(close == std::string_view::npos ? cursor_.rest().size() : close + closing.size());
    cursor_.end_raw();
  }

  std::string_view text_;
  Cursor cursor_;
  IncludeScan scan_;
  bool in_directive_ = false;
  bool in_condition_ = false;
};

}  // namespace

IncludeScan scan_includes(std::string_view text) { return Scanner(text).run(); }

std::string FileMacro::value_for(const std::string& argument) const {
  if (parameter.empty() || !value.starts_with('<')) {
    return value;
  }
  std::string text;
  std::string word;
  for (const char c : value) {  // ends with '>'
    if (is_of_identifier(c)) {
      word += c;
    } else {
      text += word == parameter ? argument : word;
      text += c;
      word.clear();
    }
  }
  return text;
}

std::optional<FileMacro> file_macro(std::string_view define) {
  const std::size_t equals = define.find('=');
  if (equals == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string name(define.substr(0, equals));
  IncludeScan scan = scan_includes("#define " + name + " " + std::string(define.substr(equals + 1)));
  return scan.macros.empty() ? std::nullopt : std::optional(std::move(scan.macros.front()));
}

}  // namespace cubind
