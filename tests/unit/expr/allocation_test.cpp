#include <catch2/catch.hpp>

#include "plan/expr/expression.hpp"
#include "tests/support/allocation_count.hpp"

namespace cubind::test {

TEST_CASE("evaluation allocates nothing") {
  const SymbolTable symbols{"N", "ROWS", "V"};
  const BoundExpression bound =
      Expression::parse("V == 0 || min(cdiv(N, ROWS), N % V ? 1 : 65535) > 3").bind(symbols);
  const Scope scope{{"N", 4096}, {"ROWS", 2}, {"V", 8}};
  const Expression expression = Expression::parse("N * ROWS * V");
  const std::int64_t values[] = {4096, 2, 8};
  const std::size_t before = allocation_count();
  const std::int64_t result = bound.evaluate(values) + expression.evaluate(scope);
  const std::size_t after = allocation_count();
  CHECK(result == 65537);
  CHECK(after == before);
}

}  // namespace cubind::test
