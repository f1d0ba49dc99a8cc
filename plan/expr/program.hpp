#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plan/expr/expression.hpp"

// The parser's result for the evaluator. Internal to plan/expr.
namespace cubind::expr {

/// An operation takes its operands from the stack and leaves its result there.
enum class Op : std::uint8_t {
  Push,  // operand: the value
  Load,  // operand: index into Program::variables
  Negate,
  Not,
  Abs,
  ToBool,
  Add,
  Subtract,
  Multiply,
  Divide,
  Remainder,
  CeilDivide,
  Min,
  Max,
  Equal,
  NotEqual,
  Less,
  LessEqual,
  Greater,
  GreaterEqual,
  Jump,         // operand: index of the next instruction
  JumpIfFalse,  // pops the condition
  JumpIfTrue,   // pops the condition
};

/// One step of a Program.
struct Instruction {
  std::int64_t operand = 0;
  std::uint32_t column = 0;  // of the operator in the text, from 1
  Op op = Op::Push;
};

/// A stack machine's program. Jumps go forward only, so it ends after at most code.size() steps; when it ends
/// one value is on the stack.
struct Program {
  std::string text;
  std::vector<Instruction> code;
  std::vector<std::string> variables;
};

/// The parser refuses an expression that needs a deeper stack. The evaluator keeps it in a local array.
inline constexpr std::size_t kMaxStack = 400;

Program compile(std::string_view text, const ExpressionLimits& limits);

/// The cause with the place in the text: the column, and below it the text with a caret.
[[noreturn]] void throw_at(ExpressionFault fault, std::string_view text, std::size_t column,
                           std::string cause);

}  // namespace cubind::expr
