#include "plan/expr/expression.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "base/text.hpp"
#include "plan/expr/lexer.hpp"
#include "plan/expr/program.hpp"

namespace cubind {

std::string_view to_string(ExpressionFault fault) {
  switch (fault) {
    case ExpressionFault::Syntax:
      return "syntax";
    case ExpressionFault::Limit:
      return "limit";
    case ExpressionFault::UnknownName:
      return "unknown_name";
    case ExpressionFault::Overflow:
      return "overflow";
    case ExpressionFault::DivisionByZero:
      return "division_by_zero";
  }
  return "syntax";
}

ExpressionError::ExpressionError(ExpressionFault fault, std::string where, std::string cause,
                                 std::size_t column)
    : Error(ErrorCode::InvalidArgument, std::move(where), std::move(cause)), fault_(fault), column_(column) {}

namespace expr {

void throw_at(ExpressionFault fault, std::string_view text, std::size_t column, std::string cause) {
  constexpr std::size_t kBefore = 50;
  constexpr std::size_t kShown = 80;
  const std::size_t offset = std::min(column - 1, text.size());
  const std::size_t start = offset > kBefore ? offset - kBefore : 0;
  std::string line(text.substr(start, kShown));
  for (char& c : line) {
    const auto byte = static_cast<unsigned char>(c);
    c = byte < 0x20 ? ' ' : byte >= 0x7f ? '?' : c;  // one character per byte keeps the caret in place
  }
  cause = "column " + std::to_string(column) + ": " + cause + "\n  " + line + "\n  " +
          std::string(offset - start, ' ') + "^";
  throw ExpressionError(fault, quoted(text), std::move(cause), column);
}

namespace {

const char* spelling(Op op) {
  switch (op) {
    case Op::Add:
      return " + ";
    case Op::Subtract:
      return " - ";
    case Op::Multiply:
      return " * ";
    case Op::Divide:
      return " / ";
    case Op::Remainder:
      return " % ";
    default:
      return ", ";
  }
}

std::string operation_text(const Instruction& at, std::int64_t left, std::int64_t right) {
  switch (at.op) {
    case Op::Negate:
      return "-(" + std::to_string(left) + ")";
    case Op::Abs:
      return "abs(" + std::to_string(left) + ")";
    case Op::CeilDivide:
      return "cdiv(" + std::to_string(left) + ", " + std::to_string(right) + ")";
    default:
      return std::to_string(left) + spelling(at.op) + std::to_string(right);
  }
}

// Runs a program. `Load` maps an index into Program::variables to its value.
template <typename Load>
class Machine {
 public:
  Machine(const Program& program, const Load& load) : program_(program), load_(load) {}

  std::int64_t run() const {
    std::array<std::int64_t, kMaxStack>
        stack;                         // not initialized: the parser has checked that reads follow writes
    std::int64_t* top = stack.data();  // one past the last value
    const Instruction* const code = program_.code.data();
    const std::size_t size = program_.code.size();
    for (std::size_t i = 0; i < size;) {
      const Instruction& at = code[i++];
      switch (at.op) {
        case Op::Push:
          *top++ = at.operand;
          break;
        case Op::Load:
          *top++ = load_(static_cast<std::size_t>(at.operand));
          break;
        case Op::Negate:
        case Op::Not:
        case Op::Abs:
        case Op::ToBool:
          top[-1] = unary(at, top[-1]);
          break;
        case Op::Jump:
          i = static_cast<std::size_t>(at.operand);
          break;
        case Op::JumpIfFalse:
          --top;
          i = *top == 0 ? static_cast<std::size_t>(at.operand) : i;
          break;
        case Op::JumpIfTrue:
          --top;
          i = *top != 0 ? static_cast<std::size_t>(at.operand) : i;
          break;
        default:
          --top;
          top[-1] = binary(at, top[-1], *top);
          break;
      }
    }
    return stack[0];
  }

 private:
  std::int64_t unary(const Instruction& at, std::int64_t value) const {
    switch (at.op) {
      case Op::Not:
        return value == 0;
      case Op::ToBool:
        return value != 0;
      default:
        break;
    }
    if (at.op == Op::Abs && value >= 0) {
      return value;
    }
    if (value == std::numeric_limits<std::int64_t>::min()) {
      overflow(at, value, 0);
    }
    return -value;
  }

  std::int64_t binary(const Instruction& at, std::int64_t a, std::int64_t b) const {
    std::int64_t result = 0;
    switch (at.op) {
      case Op::Add:
        return __builtin_add_overflow(a, b, &result) ? overflow(at, a, b) : result;
      case Op::Subtract:
        return __builtin_sub_overflow(a, b, &result) ? overflow(at, a, b) : result;
      case Op::Multiply:
        return __builtin_mul_overflow(a, b, &result) ? overflow(at, a, b) : result;
      case Op::Divide:
        check_division(at, a, b);
        return a / b;
      case Op::Remainder:
        check_division(at, a, b);
        return a % b;
      case Op::CeilDivide:
        check_division(at, a, b);
        // C truncates, which is the ceiling already unless the exact quotient is positive and not whole.
        return a / b + (a % b != 0 && (a < 0) == (b < 0) ? 1 : 0);
      case Op::Min:
        return std::min(a, b);
      case Op::Max:
        return std::max(a, b);
      case Op::Equal:
        return a == b;
      case Op::NotEqual:
        return a != b;
      case Op::Less:
        return a < b;
      case Op::LessEqual:
        return a <= b;
      case Op::Greater:
        return a > b;
      case Op::GreaterEqual:
        return a >= b;
      default:
        throw Error(ErrorCode::Internal, quoted(program_.text), "the program is damaged");
    }
  }

  void check_division(const Instruction& at, std::int64_t a, std::int64_t b) const {
    if (b == 0) {
      fail(ExpressionFault::DivisionByZero, "division by zero in ", at, a, b);
    }
    // Both the quotient and, by C's definition, the remainder; the processor traps on either.
    if (b == -1 && a == std::numeric_limits<std::int64_t>::min()) {
      overflow(at, a, b);
    }
  }

  [[noreturn]] std::int64_t overflow(const Instruction& at, std::int64_t a, std::int64_t b) const {
    fail(ExpressionFault::Overflow, "overflow in ", at, a, b);
  }

  [[noreturn]] void fail(ExpressionFault fault, std::string cause, const Instruction& at, std::int64_t a,
                         std::int64_t b) const {
    cause += operation_text(at, a, b) + " (column " + std::to_string(at.column) + ")";
    for (std::size_t i = 0; i < program_.variables.size(); ++i) {
      cause += (i == 0 ? ", where " : ", ") + program_.variables[i] + " = " + std::to_string(load_(i));
    }
    throw ExpressionError(fault, quoted(program_.text), std::move(cause), at.column);
  }

  const Program& program_;
  const Load& load_;
};

template <typename Load>
std::int64_t run(const Program& program, const Load& load) {
  return Machine<Load>(program, load).run();
}

[[noreturn]] void throw_unknown(const Program& program, std::size_t variable,
                                const std::vector<std::string>& known) {
  const std::string& name = program.variables[variable];
  std::size_t column = 0;
  for (const Instruction& at : program.code) {
    if (at.op == Op::Load && static_cast<std::size_t>(at.operand) == variable) {
      column = at.column;
      break;
    }
  }
  throw_at(ExpressionFault::UnknownName, program.text, column,
           "there is no " + quoted(name) + " here" + suggestion(name, known));
}

}  // namespace
}  // namespace expr

Expression::Expression(std::shared_ptr<const expr::Program> program) : program_(std::move(program)) {}

Expression Expression::parse(std::string_view text, const ExpressionLimits& limits) {
  return Expression(std::make_shared<const expr::Program>(expr::compile(text, limits)));
}

const std::vector<std::string>& Expression::variables() const noexcept { return program_->variables; }

BoundExpression Expression::bind(const SymbolTable& symbols) const {
  std::vector<std::uint32_t> slots;
  slots.reserve(program_->variables.size());
  for (std::size_t i = 0; i < program_->variables.size(); ++i) {
    const auto slot = symbols.find(program_->variables[i]);
    if (!slot) {
      expr::throw_unknown(*program_, i, symbols.names());
    }
    slots.push_back(static_cast<std::uint32_t>(*slot));
  }
  return BoundExpression(program_, std::move(slots));
}

std::string Expression::text_with(const Scope& values) const {
  std::string text;
  const std::string& from = program_->text;
  const auto& names = program_->variables;
  std::size_t copied = 0;
  for (expr::Lexer lexer(from); lexer.current().kind != expr::TokenKind::End; lexer.advance()) {
    const expr::Token& token = lexer.current();
    const auto value = token.kind == expr::TokenKind::Name ? values.find(token.text) : std::nullopt;
    if (value && std::ranges::find(names, token.text) != names.end()) {
      const std::size_t begin = token.column - 1;
      text += from.substr(copied, begin - copied) + "(" + std::to_string(*value) + ")";
      copied = begin + token.text.size();
    }
  }
  return text + from.substr(copied);
}

std::int64_t Expression::evaluate(const Scope& scope) const {
  for (std::size_t i = 0; i < program_->variables.size(); ++i) {
    if (!scope.find(program_->variables[i])) {
      expr::throw_unknown(*program_, i, scope.names());
    }
  }
  return expr::run(*program_, [this, &scope](std::size_t i) { return *scope.find(program_->variables[i]); });
}

BoundExpression::BoundExpression(std::shared_ptr<const expr::Program> program,
                                 std::vector<std::uint32_t> slots)
    : program_(std::move(program)), slots_(std::move(slots)) {
  for (const std::uint32_t slot : slots_) {
    slots_needed_ = std::max<std::size_t>(slots_needed_, std::size_t{slot} + 1);
  }
}

const std::string& BoundExpression::text() const noexcept { return program_->text; }

std::int64_t BoundExpression::evaluate(std::span<const std::int64_t> values) const {
  if (values.size() < slots_needed_) {
    throw Error(ErrorCode::Internal, quoted(program_->text),
                "needs " + std::to_string(slots_needed_) + " values, got " + std::to_string(values.size()));
  }
  return expr::run(*program_, [this, values](std::size_t i) { return values[slots_[i]]; });
}

}  // namespace cubind
