#include "plan/expr/lexer.hpp"

#include <array>

#include "base/identifier.hpp"
#include "base/text.hpp"
#include "plan/expr/program.hpp"

namespace cubind::expr {
namespace {

constexpr std::uint64_t kLargest = std::uint64_t{1} << 63;

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

}  // namespace

Lexer::Lexer(std::string_view text) : text_(text) { advance(); }

void Lexer::advance() {
  while (position_ < text_.size() && is_space(text_[position_])) {
    ++position_;
  }
  token_ = Token{};
  token_.column = position_ + 1;
  if (position_ == text_.size()) {
    return;
  }
  const std::size_t start = position_;
  if (is_digit(text_[start])) {
    take_literal();
  } else if (is_letter(text_[start])) {
    take_name();
  } else {
    take_operator();
  }
  token_.text = text_.substr(start, position_ - start);
}

std::string Lexer::describe() const {
  return token_.kind == TokenKind::End ? "the end" : quoted(token_.text);
}

void Lexer::take_literal() {
  token_.kind = TokenKind::Literal;
  const std::size_t start = position_;
  for (; position_ < text_.size() && is_digit(text_[position_]); ++position_) {
    const auto digit = static_cast<std::uint64_t>(text_[position_] - '0');
    if (token_.magnitude > (kLargest - digit) / 10) {
      fail(start, "the literal does not fit into a 64-bit integer");
    }
    token_.magnitude = token_.magnitude * 10 + digit;
  }
  if (position_ < text_.size() && (is_letter(text_[position_]) || text_[position_] == '.')) {
    fail(start, "only decimal integers are literals, without fraction, exponent, prefix or suffix");
  }
  if (text_[start] == '0' && position_ > start + 1) {
    fail(start, "a literal has no leading zero (in C it would be octal)");
  }
}

void Lexer::take_name() {
  token_.kind = TokenKind::Name;
  for (;;) {
    while (position_ < text_.size() && (is_letter(text_[position_]) || is_digit(text_[position_]))) {
      ++position_;
    }
    if (position_ == text_.size() || text_[position_] != '.') {
      return;
    }
    ++position_;
    if (position_ == text_.size() || !is_letter(text_[position_])) {
      fail(position_ - 1, "a name must follow the dot");
    }
  }
}

void Lexer::take_operator() {
  static constexpr std::array<std::string_view, 6> kTwo = {"&&", "||", "==", "!=", "<=", ">="};
  static constexpr std::string_view kOne = "+-*/%<>!?:(),";
  token_.kind = TokenKind::Operator;
  const std::string_view rest = text_.substr(position_);
  if (rest.starts_with("**")) {
    fail(position_, "there are no powers: write D * D");
  }
  if (rest.starts_with("//")) {
    fail(position_, "a / b drops the fraction already, and cdiv(a, b) rounds up");
  }
  for (const std::string_view op : kTwo) {
    if (rest.starts_with(op)) {
      position_ += op.size();
      return;
    }
  }
  if (kOne.find(rest.front()) != std::string_view::npos) {
    ++position_;
    return;
  }
  switch (rest.front()) {
    case '=':
      fail(position_, "nothing is assigned here, comparison is \"==\"");
    case '&':
      fail(position_, "there are no bit operations, the logical one is \"&&\"");
    case '|':
      fail(position_, "there are no bit operations, the logical one is \"||\"");
    default:
      fail(position_, quoted(rest.substr(0, 1)) + " has no meaning in an expression");
  }
}

void Lexer::fail(std::size_t offset, std::string cause) const {
  throw_at(ExpressionFault::Syntax, text_, offset + 1, std::move(cause));
}

}  // namespace cubind::expr
