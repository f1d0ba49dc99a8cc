// An expression either is refused with its place, or means the same however it is evaluated.
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "plan/expr/expression.hpp"
#include "tests/fuzz/refusal.hpp"

namespace cubind::fuzz {
namespace {

std::optional<std::int64_t> value_of(const Expression& expression, const Scope& scope) {
  try {
    return expression.evaluate(scope);
  } catch (const ExpressionError& error) {
    require(error.fault() == ExpressionFault::Overflow || error.fault() == ExpressionFault::DivisionByZero);
    return std::nullopt;
  }
}

std::optional<std::int64_t> value_of(const BoundExpression& bound, const std::vector<std::int64_t>& values) {
  try {
    return bound.evaluate(values);
  } catch (const ExpressionError&) {
    return std::nullopt;
  }
}

void compare(const Expression& expression, std::int64_t first) {
  Scope scope;
  SymbolTable symbols;
  std::vector<std::int64_t> values;
  for (const std::string& name : expression.variables()) {
    const std::int64_t value = first + static_cast<std::int64_t>(values.size());
    scope.set(name, value);
    symbols.add(name);
    values.push_back(value);
  }
  require(value_of(expression, scope) == value_of(expression.bind(symbols), values));
}

}  // namespace
}  // namespace cubind::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cubind;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  fuzz::refuse_or([&] {
    const Expression expression = Expression::parse(text);
    for (const std::int64_t first : {std::int64_t{-1}, std::int64_t{0}, std::int64_t{4096}, INT64_MAX - 64}) {
      fuzz::compare(expression, first);
    }
  });
  return 0;
}
