#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

// Tokens of an expression. Internal to plan/expr.
namespace cubind::expr {

/// Operators are punctuation too: parentheses and commas.
enum class TokenKind { End, Literal, Name, Operator };

/// A token in place: its text lies in that of the expression.
struct Token {
  TokenKind kind = TokenKind::End;
  std::string_view text;        // as written; empty at the end
  std::size_t column = 1;       // from 1
  std::uint64_t magnitude = 0;  // of a literal; at most 2^63, and 2^63 itself only behind a minus
};

/// An expression's tokens one after the other, with one token of lookahead.
class Lexer {
 public:
  /// Borrows the text. Throws ExpressionError if the first token is wrong.
  explicit Lexer(std::string_view text);

  const Token& current() const { return token_; }
  bool at(std::string_view op) const { return token_.kind == TokenKind::Operator && token_.text == op; }
  bool begins_operand() const {
    return token_.kind == TokenKind::Name || token_.kind == TokenKind::Literal || at("(");
  }
  /// Throws ExpressionError (Syntax) if the next token is wrong.
  void advance();
  /// The token in a message: `"x"` or `the end`.
  std::string describe() const;

 private:
  void take_literal();
  void take_name();
  void take_operator();
  [[noreturn]] void fail(std::size_t offset, std::string cause) const;

  std::string_view text_;
  std::size_t position_ = 0;
  Token token_;
};

}  // namespace cubind::expr
