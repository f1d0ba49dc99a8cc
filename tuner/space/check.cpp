#include "tuner/space/check.hpp"

#include "plan/expr/expression.hpp"

namespace cubind {

Check expression_check(const std::string& text, std::span<const Axis> axes) {
  SymbolTable symbols;
  for (const Axis& axis : axes) {
    symbols.add(axis.name);
  }
  const BoundExpression expression = Expression::parse(text).bind(symbols);
  return {{expression.slots().begin(), expression.slots().end()},
          [expression](std::span<const std::int64_t> values) { return expression.evaluate_bool(values); }};
}

}  // namespace cubind
