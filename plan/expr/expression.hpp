#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"

// Expressions of kernel specs: constraints, extents, grids, scalars. One evaluator for daemon, agent and
// clients, pinned by schemas/expression_vectors.json.
//
//   expression     = or [ "?" expression ":" expression ]      ; groups from the right
//   or             = and { "||" and }
//   and            = equality { "&&" equality }
//   equality       = relation [ ( "==" | "!=" ) relation ]     ; no chain: a == b == c means two things
//   relation       = sum [ ( "<" | "<=" | ">" | ">=" ) sum ]   ; no chain
//   sum            = product { ( "+" | "-" ) product }
//   product        = unary { ( "*" | "/" | "%" ) unary }
//   unary          = { "-" | "!" } primary
//   primary        = literal | name | call | "sizeof" "(" type ")" | "(" expression ")"
//   call           = ( "cdiv" | "min" | "max" | "abs" ) "(" expression { "," expression } ")"
//   literal        = "0" | nonzero digit { digit }             ; decimal; 010, 0x10, 1.5 and 1e3 are errors
//   name           = identifier { "." identifier }             ; N, THREADS, device.sm_count
//   type           = identifier
//
// Values are signed 64-bit integers and nothing wraps: overflow and division by zero are errors.
//   /  truncates toward zero and % has the sign of its left operand, as in C: -7 / 2 == -3, -7 % 2 == -1.
//      INT64_MIN / -1 and INT64_MIN % -1 overflow.
//   cdiv(a, b) is the smallest integer not below a/b, for either sign.
//   min and max take two arguments or more, abs takes one.
//   Comparisons and ! && || give 0 or 1; any value but 0 is true.
//   && || ?: do not evaluate the operand that they do not need, so `V == 0 || N % V == 0` never divides by
//      zero.
//   -9223372036854775808 is INT64_MIN.
//   sizeof(T) is the size in bytes of an element: of f64 f32 f16 bf16 e4m3 e5m2 i64 i32 i8 u8 a literal, of
//      any other T the variable named "sizeof(T)".
namespace cubind {

/// The first three are found before an expression is evaluated.
enum class ExpressionFault {
  Syntax,          // the text is not an expression
  Limit,           // longer, deeper or larger than ExpressionLimits
  UnknownName,     // a variable that the scope or symbol table does not have
  Overflow,        // a result outside of int64
  DivisionByZero,  // by / % or cdiv
};

/// "syntax", "limit", "unknown_name", "overflow", "division_by_zero": the spelling of the conformance
/// vectors.
std::string_view to_string(ExpressionFault fault);

/// Error code InvalidArgument; `where` is the quoted expression, `cause` for example
///   column 9: expected an operator, found ")"   with two more lines: the text, and a caret below the place
///   overflow in 1099511627776 * 1073741824 (column 3), where N = 1099511627776, D = 1073741824
class ExpressionError : public Error {
 public:
  ExpressionError(ExpressionFault fault, std::string where, std::string cause, std::size_t column);

  ExpressionFault fault() const noexcept { return fault_; }
  /// The place in the text, counted from 1; 0 if no place applies.
  std::size_t column() const noexcept { return column_; }

 private:
  ExpressionFault fault_;
  std::size_t column_;
};

/// Beyond these an expression is refused: they bound the cost of reading a spec.
struct ExpressionLimits {
  std::size_t max_length = 4096;        // bytes of text
  std::size_t max_depth = 64;           // of nested parentheses, calls, unary operators and ?: branches
  std::size_t max_instructions = 2048;  // of the compiled program
};

/// Bytes of an element of a literal type (see above); nullopt for any other name.
std::optional<std::int64_t> literal_type_size(std::string_view type);

/// "sizeof(T)": the name of the variable that sizeof(T) reads.
std::string sizeof_variable(std::string_view type);

/// Variable names numbered from 0 in the order of their addition. The numbers are the slots of the value
/// array that BoundExpression::evaluate reads. Const use is thread-safe.
class SymbolTable {
 public:
  SymbolTable() = default;
  SymbolTable(std::initializer_list<std::string_view> names);

  /// The new name's slot; throws AlreadyExists for a repeated one.
  std::size_t add(std::string_view name);
  /// add(sizeof_variable(type)).
  std::size_t add_sizeof(std::string_view type) { return add(sizeof_variable(type)); }

  std::optional<std::size_t> find(std::string_view name) const;
  std::size_t size() const noexcept { return names_.size(); }
  const std::string& name(std::size_t slot) const { return names_.at(slot); }
  const std::vector<std::string>& names() const noexcept { return names_; }

 private:
  std::vector<std::string> names_;
  std::map<std::string, std::size_t, std::less<>> slots_;
};

/// Names with their values, for callers that evaluate once.
class Scope {
 public:
  Scope() = default;
  Scope(std::initializer_list<std::pair<std::string_view, std::int64_t>> values);

  /// Adds or replaces.
  void set(std::string_view name, std::int64_t value);
  void set_sizeof(std::string_view type, std::int64_t bytes) { set(sizeof_variable(type), bytes); }
  std::optional<std::int64_t> find(std::string_view name) const;
  std::vector<std::string> names() const;

 private:
  std::map<std::string, std::int64_t, std::less<>> values_;
};

class BoundExpression;

namespace expr {
struct Program;
}

/// A parsed expression. Immutable and cheap to copy (copies share the program); every method may be called
/// from several threads at once.
class Expression {
 public:
  /// Throws ExpressionError (Syntax or Limit).
  static Expression parse(std::string_view text, const ExpressionLimits& limits = {});

  /// The distinct names that it refers to, in the order of their first appearance; sizeof(T) of a type that
  /// is not literal is the name "sizeof(T)".
  const std::vector<std::string>& variables() const noexcept;

  /// The text with each of these variables replaced by its value.
  std::string text_with(const Scope& values) const;

  /// Resolves the names. Throws ExpressionError (UnknownName), with the nearest known name.
  BoundExpression bind(const SymbolTable& symbols) const;

  /// Binds and evaluates at once. Every name must be known, also in an operand that is not evaluated.
  /// Allocates nothing unless it throws ExpressionError (UnknownName, Overflow, DivisionByZero).
  std::int64_t evaluate(const Scope& scope) const;
  bool evaluate_bool(const Scope& scope) const { return evaluate(scope) != 0; }

 private:
  explicit Expression(std::shared_ptr<const expr::Program> program);
  std::shared_ptr<const expr::Program> program_;
};

/// An expression whose names are slots of one symbol table, for evaluation in a loop. Immutable, cheap to
/// copy, re-entrant; evaluation allocates nothing unless it throws.
class BoundExpression {
 public:
  const std::string& text() const noexcept;

  /// The distinct slots that it reads, in the order of Expression::variables(). A constraint can be evaluated
  /// as soon as these have their values; all others are ignored.
  std::span<const std::uint32_t> slots() const noexcept { return slots_; }

  /// `values` is indexed by the symbol table's slots and must reach to the highest of slots(), else Internal
  /// is thrown. Throws ExpressionError (Overflow, DivisionByZero) with the operation and the values.
  std::int64_t evaluate(std::span<const std::int64_t> values) const;
  bool evaluate_bool(std::span<const std::int64_t> values) const { return evaluate(values) != 0; }

 private:
  friend class Expression;
  BoundExpression(std::shared_ptr<const expr::Program> program, std::vector<std::uint32_t> slots);
  std::shared_ptr<const expr::Program> program_;
  std::vector<std::uint32_t> slots_;
  std::size_t slots_needed_ = 0;
};

}  // namespace cubind
