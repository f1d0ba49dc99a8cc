#include <array>
#include <catch2/catch.hpp>

#include "base/random.hpp"
#include "plan/expr/expression.hpp"

namespace cubind {
namespace {

std::string pick(Random& random, std::span<const std::string_view> from) {
  return std::string(from[static_cast<std::size_t>(random.below(from.size()))]);
}

std::string random_tokens(Random& random) {
  static constexpr std::array<std::string_view, 33> kTokens = {"+",
                                                               "-",
                                                               "*",
                                                               "/",
                                                               "%",
                                                               "<",
                                                               "<=",
                                                               ">",
                                                               ">=",
                                                               "==",
                                                               "!=",
                                                               "&&",
                                                               "||",
                                                               "!",
                                                               "?",
                                                               ":",
                                                               "(",
                                                               ")",
                                                               ",",
                                                               "N",
                                                               "D.x",
                                                               "sizeof(T)",
                                                               "min",
                                                               "max",
                                                               "cdiv",
                                                               "abs",
                                                               "sizeof",
                                                               "0",
                                                               "1",
                                                               "7",
                                                               "4611686018427387904",
                                                               " ",
                                                               "."};
  std::string text;
  for (std::uint64_t left = 1 + random.below(12); left > 0; --left) {
    text += pick(random, kTokens);
  }
  return text;
}

// Always well-formed; values stay small, so that all operators can be recomputed without overflow.
struct Generated {
  std::string text;
  std::int64_t value;
};

Generated generate(Random& random, int depth) {
  if (depth == 0 || random.below(5) == 0) {
    const auto value = static_cast<std::int64_t>(random.below(10));
    return {std::to_string(value), value};
  }
  const Generated a = generate(random, depth - 1);
  const Generated b = generate(random, depth - 1);
  const auto infix = [&](const char* op, std::int64_t value) {
    return Generated{"(" + a.text + ")" + op + "(" + b.text + ")", value};
  };
  switch (random.below(8)) {
    case 0:
      return infix("+", a.value + b.value);
    case 1:
      return infix(" - ", a.value - b.value);
    case 2:
      return infix("<=", a.value <= b.value);
    case 3:
      return infix(" && ", a.value != 0 && b.value != 0);
    case 4:
      return infix("||", a.value != 0 || b.value != 0);
    case 5:
      return {"-(" + a.text + ")", -a.value};
    case 6:
      return {"min(" + a.text + ", " + b.text + ")", std::min(a.value, b.value)};
    default:
      return {"(" + a.text + ") ? " + b.text + " : (" + b.text + ") * 2",
              a.value != 0 ? b.value : b.value * 2};
  }
}

template <typename Evaluate>
std::string outcome_of(const Evaluate& evaluate) {
  try {
    return std::to_string(evaluate());
  } catch (const ExpressionError& error) {
    return std::string(to_string(error.fault())) + ": column " + std::to_string(error.column());
  }
}

}  // namespace

TEST_CASE("any text gives a value or an expression error and alike by name and by slot") {
  Random random(42);
  const Scope scope{{"N", 6}, {"D.x", -3}, {"sizeof(T)", 2}};
  const SymbolTable symbols{"sizeof(T)", "D.x", "N"};
  const std::int64_t values[] = {2, -3, 6};
  int evaluated = 0;
  for (int i = 0; i < 10000; ++i) {
    const std::string text = random_tokens(random);
    std::optional<Expression> parsed;
    const std::string by_name =
        outcome_of([&] { return parsed.emplace(Expression::parse(text)).evaluate(scope); });
    INFO(text);
    if (parsed) {
      REQUIRE(by_name == outcome_of([&] { return parsed->bind(symbols).evaluate(values); }));
    }
    evaluated += by_name.find(':') == std::string::npos;
  }
  CHECK(evaluated > 150);
}

TEST_CASE("a generated expression has the value it was generated with") {
  Random random(43);
  for (int i = 0; i < 5000; ++i) {
    const Generated generated = generate(random, 5);
    if (generated.text.size() <= ExpressionLimits{}.max_length) {
      INFO(generated.text);
      REQUIRE(Expression::parse(generated.text).evaluate({}) == generated.value);
    }
  }
}

}  // namespace cubind
