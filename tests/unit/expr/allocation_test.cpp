#include <catch2/catch.hpp>
#include <cstdlib>
#include <new>

#include "tuner/expr/expression.hpp"

namespace {

// Allocations of this thread, to hold the evaluator to its word.
thread_local long allocations = 0;

}  // namespace

void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) {
    return memory;
  }
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace cubind {

TEST_CASE("evaluation allocates nothing") {
  const SymbolTable symbols{"N", "ROWS", "V"};
  const BoundExpression bound =
      Expression::parse("V == 0 || min(cdiv(N, ROWS), N % V ? 1 : 65535) > 3").bind(symbols);
  const Scope scope{{"N", 4096}, {"ROWS", 2}, {"V", 8}};
  const Expression expression = Expression::parse("N * ROWS * V");
  const std::int64_t values[] = {4096, 2, 8};
  const long before = allocations;
  const std::int64_t result = bound.evaluate(values) + expression.evaluate(scope);
  const long after = allocations;
  CHECK(result == 65537);
  CHECK(after == before);
}

}  // namespace cubind
