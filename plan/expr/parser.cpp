#include <algorithm>
#include <array>
#include <limits>

#include "base/text.hpp"
#include "plan/expr/lexer.hpp"
#include "plan/expr/program.hpp"

namespace cubind::expr {
namespace {

struct NamedFunction {
  std::string_view name;
  Op op;
  std::size_t least;
  std::size_t most;
};
constexpr std::size_t kAny = std::numeric_limits<std::size_t>::max();
constexpr std::array<NamedFunction, 4> kFunctions = {{{"cdiv", Op::CeilDivide, 2, 2},
                                                      {"min", Op::Min, 2, kAny},
                                                      {"max", Op::Max, 2, kAny},
                                                      {"abs", Op::Abs, 1, 1}}};
constexpr std::string_view kSizeof = "sizeof";

struct Operator {
  std::string_view text;
  Op op;
};
constexpr std::array<Operator, 2> kEqualities = {{{"==", Op::Equal}, {"!=", Op::NotEqual}}};
constexpr std::array<Operator, 4> kRelations = {
    {{"<", Op::Less}, {"<=", Op::LessEqual}, {">", Op::Greater}, {">=", Op::GreaterEqual}}};
constexpr std::array<Operator, 2> kSums = {{{"+", Op::Add}, {"-", Op::Subtract}}};
constexpr std::array<Operator, 3> kProducts = {
    {{"*", Op::Multiply}, {"/", Op::Divide}, {"%", Op::Remainder}}};

template <std::size_t N>
const Operator* matching(const Lexer& lexer, const std::array<Operator, N>& operators) {
  const auto found = std::ranges::find_if(operators, [&](const Operator& op) { return lexer.at(op.text); });
  return found == operators.end() ? nullptr : &*found;
}

const NamedFunction* function_named(std::string_view name) {
  const auto found =
      std::ranges::find_if(kFunctions, [&](const NamedFunction& each) { return each.name == name; });
  return found == kFunctions.end() ? nullptr : &*found;
}

/// What to write instead of Python's words for operators.
std::string_view spelled_in_c(std::string_view word) {
  constexpr std::pair<std::string_view, std::string_view> kWords[] = {
      {"and", ": write &&"},
      {"or", ": write ||"},
      {"not", ": write !"},
      {"in", ": compare with each value, as in V == 1 || V == 2"},
      {"if", ": write CONDITION ? A : B"},
  };
  const auto found = std::ranges::find(kWords, word, &std::pair<std::string_view, std::string_view>::first);
  return found == std::end(kWords) ? "" : found->second;
}

// Recursive descent, one method per line of the grammar in expression.hpp; code is emitted as operands are
// complete.
class Parser {
 public:
  Parser(std::string_view text, const ExpressionLimits& limits) : limits_(limits), lexer_(text) {
    program_.text = text;
  }

  Program run() {
    parse_expression();
    if (lexer_.current().kind != TokenKind::End) {
      fail("expected an operator, found " + found());
    }
    return std::move(program_);
  }

 private:
  // Counts how deep the recursion is.
  class Nested {
   public:
    explicit Nested(Parser& parser) : parser_(parser) {
      if (++parser_.depth_ > parser_.limits_.max_depth) {
        parser_.fail("nested deeper than " + std::to_string(parser_.limits_.max_depth) + " levels",
                     ExpressionFault::Limit);
      }
    }
    ~Nested() { --parser_.depth_; }
    Nested(const Nested&) = delete;
    Nested& operator=(const Nested&) = delete;

   private:
    Parser& parser_;
  };

  [[noreturn]] void fail(std::string cause, ExpressionFault fault = ExpressionFault::Syntax) const {
    throw_at(fault, program_.text, lexer_.current().column, std::move(cause));
  }

  std::string found() const { return lexer_.describe() + std::string(spelled_in_c(lexer_.current().text)); }

  void expect(std::string_view op) {
    if (!lexer_.at(op)) {
      fail("expected " + quoted(op) + ", found " + found());
    }
    lexer_.advance();
  }

  // ---- Emission. `stack_` is the number of values on the machine's stack after the instruction. ----

  std::size_t emit(Op op, std::size_t column, std::int64_t operand, int stack_change) {
    if (program_.code.size() >= limits_.max_instructions) {
      fail("compiles to more than " + std::to_string(limits_.max_instructions) + " instructions",
           ExpressionFault::Limit);
    }
    stack_ = static_cast<std::size_t>(static_cast<std::ptrdiff_t>(stack_) + stack_change);
    if (stack_ > kMaxStack) {
      fail("needs more than " + std::to_string(kMaxStack) + " intermediate values", ExpressionFault::Limit);
    }
    program_.code.push_back({operand, static_cast<std::uint32_t>(column), op});
    return program_.code.size() - 1;
  }

  void emit_push(std::int64_t value, std::size_t column) { emit(Op::Push, column, value, +1); }
  void emit_unary(Op op, std::size_t column) { emit(op, column, 0, 0); }
  void emit_binary(Op op, std::size_t column) { emit(op, column, 0, -1); }
  std::size_t emit_jump(Op op, std::size_t column) { return emit(op, column, 0, op == Op::Jump ? 0 : -1); }
  void land(std::size_t jump) {
    program_.code[jump].operand = static_cast<std::int64_t>(program_.code.size());
  }

  void emit_load(std::string name, std::size_t column) {
    auto& variables = program_.variables;
    auto found = std::ranges::find(variables, name);
    if (found == variables.end()) {
      found = variables.insert(variables.end(), std::move(name));
    }
    emit(Op::Load, column, found - variables.begin(), +1);
  }

  // ---- The grammar ----

  void parse_expression() {
    const Nested nested(*this);
    parse_or();
    if (!lexer_.at("?")) {
      return;
    }
    const std::size_t column = lexer_.current().column;
    lexer_.advance();
    const std::size_t to_else = emit_jump(Op::JumpIfFalse, column);
    parse_expression();
    expect(":");
    const std::size_t to_end = emit_jump(Op::Jump, column);
    land(to_else);
    --stack_;  // only one of the two branches leaves its value
    parse_expression();
    land(to_end);
  }

  void parse_or() { parse_short_circuit("||", Op::JumpIfTrue, 1, &Parser::parse_and); }
  void parse_and() { parse_short_circuit("&&", Op::JumpIfFalse, 0, &Parser::parse_equality); }

  // left; jump to `decided` if it decides; right to 0 or 1; jump to the end; decided: push what it decides.
  void parse_short_circuit(std::string_view op, Op jump, std::int64_t decided, void (Parser::*operand)()) {
    (this->*operand)();
    while (lexer_.at(op)) {
      const std::size_t column = lexer_.current().column;
      lexer_.advance();
      const std::size_t to_decided = emit_jump(jump, column);
      (this->*operand)();
      emit_unary(Op::ToBool, column);
      const std::size_t to_end = emit_jump(Op::Jump, column);
      land(to_decided);
      --stack_;
      emit_push(decided, column);
      land(to_end);
    }
  }

  void parse_equality() { parse_comparison(kEqualities, &Parser::parse_relation); }
  void parse_relation() { parse_comparison(kRelations, &Parser::parse_sum); }
  void parse_sum() { parse_arithmetic(kSums, &Parser::parse_product); }
  void parse_product() { parse_arithmetic(kProducts, &Parser::parse_unary); }

  template <std::size_t N>
  void parse_comparison(const std::array<Operator, N>& operators, void (Parser::*operand)()) {
    (this->*operand)();
    const Operator* op = matching(lexer_, operators);
    if (op == nullptr) {
      return;
    }
    const std::size_t column = lexer_.current().column;
    lexer_.advance();
    (this->*operand)();
    emit_binary(op->op, column);
    if (matching(lexer_, operators) != nullptr) {
      // C compares the truth value of the first comparison, Python means both comparisons.
      fail("a comparison cannot be compared again: write \"a < b && b < c\" or parentheses");
    }
  }

  template <std::size_t N>
  void parse_arithmetic(const std::array<Operator, N>& operators, void (Parser::*operand)()) {
    (this->*operand)();
    while (const Operator* op = matching(lexer_, operators)) {
      const std::size_t column = lexer_.current().column;
      lexer_.advance();
      (this->*operand)();
      emit_binary(op->op, column);
    }
  }

  void parse_unary() {
    const bool minus = lexer_.at("-");
    if (!minus && !lexer_.at("!")) {
      parse_primary();
      return;
    }
    const Nested nested(*this);
    const std::size_t column = lexer_.current().column;
    lexer_.advance();
    if (minus && lexer_.current().kind == TokenKind::Literal) {
      // One step, so that INT64_MIN can be written.
      emit_push(static_cast<std::int64_t>(std::uint64_t{0} - lexer_.current().magnitude), column);
      lexer_.advance();
      return;
    }
    parse_unary();
    emit_unary(minus ? Op::Negate : Op::Not, column);
  }

  void parse_primary() {
    const Token token = lexer_.current();
    if (token.kind == TokenKind::Literal) {
      if (token.magnitude > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
        fail("the literal does not fit into a 64-bit integer");
      }
      lexer_.advance();
      emit_push(static_cast<std::int64_t>(token.magnitude), token.column);
    } else if (token.kind == TokenKind::Name) {
      lexer_.advance();
      parse_name(token);
    } else if (lexer_.at("(")) {
      lexer_.advance();
      parse_expression();
      expect(")");
    } else {
      fail("expected an operand, found " + lexer_.describe());
    }
  }

  void parse_name(const Token& name) {
    if (name.text == kSizeof) {
      parse_sizeof(name);
    } else if (const NamedFunction* function = function_named(name.text)) {
      parse_call(*function, name);
    } else if (name.text == "not" && lexer_.begins_operand()) {
      throw_at(ExpressionFault::Syntax, program_.text, name.column, "\"not\" is no operator: write !");
    } else if (lexer_.at("(")) {
      std::vector<std::string> known{std::string(kSizeof)};
      for (const NamedFunction& each : kFunctions) {
        known.emplace_back(each.name);
      }
      throw_at(ExpressionFault::Syntax, program_.text, name.column,
               "there is no function " + quoted(name.text) + suggestion(name.text, known));
    } else {
      emit_load(std::string(name.text), name.column);
    }
  }

  void parse_sizeof(const Token& name) {
    expect("(");
    const Token type = lexer_.current();
    if (type.kind != TokenKind::Name || type.text.find('.') != std::string_view::npos) {
      fail("expected a type, found " + lexer_.describe());
    }
    lexer_.advance();
    expect(")");
    if (const auto bytes = literal_type_size(type.text)) {
      emit_push(*bytes, name.column);
    } else {
      emit_load(sizeof_variable(type.text), name.column);
    }
  }

  void parse_call(const NamedFunction& function, const Token& name) {
    expect("(");
    std::size_t count = 0;
    do {
      if (count > 0) {
        lexer_.advance();
      }
      parse_expression();
      ++count;
      if (count > function.most) {
        break;
      }
      // min and max fold from the left: the stack holds one value for all arguments so far.
      if (count >= 2) {
        emit_binary(function.op, name.column);
      }
    } while (lexer_.at(","));
    if (count < function.least || count > function.most) {
      throw_at(ExpressionFault::Syntax, program_.text, name.column,
               quoted(function.name) + " takes " + std::to_string(function.least) +
                   (function.most == kAny ? " arguments or more"
                    : function.least == 1 ? " argument"
                                          : " arguments"));
    }
    expect(")");
    if (function.most == 1) {
      emit_unary(function.op, name.column);
    }
  }

  const ExpressionLimits limits_;
  Program program_;
  Lexer lexer_;
  std::size_t depth_ = 0;
  std::size_t stack_ = 0;
};

}  // namespace

Program compile(std::string_view text, const ExpressionLimits& limits) {
  if (text.size() > limits.max_length) {
    throw ExpressionError(ExpressionFault::Limit, quoted(text),
                          "an expression of " + std::to_string(text.size()) + " bytes, at most " +
                              std::to_string(limits.max_length) + " are taken",
                          0);
  }
  return Parser(text, limits).run();
}

}  // namespace cubind::expr
