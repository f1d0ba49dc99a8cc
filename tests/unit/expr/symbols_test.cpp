#include <catch2/catch.hpp>

#include "plan/expr/expression.hpp"
#include "tests/support/refusal_of.hpp"

namespace cubind {

TEST_CASE("symbols are numbered in the order of their addition") {
  SymbolTable symbols{"N", "D"};
  CHECK(symbols.add("THREADS") == 2);
  CHECK(symbols.add_sizeof("T") == 3);
  CHECK(symbols.find("D") == 1u);
  CHECK(symbols.find("sizeof(T)") == 3u);
  CHECK_FALSE(symbols.find("d"));
  CHECK(symbols.name(2) == "THREADS");
  CHECK(symbols.size() == 4);
}

TEST_CASE("a symbol cannot be declared twice") {
  SymbolTable symbols{"N"};
  const Error error = test::error_of([&] { symbols.add("N"); }).value();
  CHECK(error.code() == ErrorCode::AlreadyExists);
  CHECK(error.cause() == "\"N\" is declared twice");
  CHECK(symbols.size() == 1);
}

TEST_CASE("a scope replaces the value of a known name") {
  Scope scope{{"N", 1}};
  scope.set("N", 2);
  scope.set_sizeof("T", 4);
  CHECK(scope.find("N") == 2);
  CHECK(scope.find("sizeof(T)") == 4);
  CHECK_FALSE(scope.find("M"));
}

bool is_variable(const std::string& name) {
  try {
    const Expression expression = Expression::parse(name);
    return expression.variables().size() == 1 && expression.variables()[0] == name;
  } catch (const ExpressionError&) {
    return false;
  }
}

TEST_CASE("variables are identifiers joined by dots and no function") {
  for (const char* name : {"N", "_n1", "device.sm_count", "a.b.c", "minimum", "THREADS"}) {
    CHECK(is_variable(name));
  }
  for (const char* name : {"", " N", "N ", "1N", "a.", ".a", "a..b", "a-b", "min", "cdiv", "sizeof", "abs",
                           "max", "1", "a b", "\xc3\xa9"}) {
    INFO(name);
    CHECK_FALSE(is_variable(name));
  }
}

TEST_CASE("the literal types are the ten of the design") {
  CHECK(literal_type_size("bf16") == 2);
  CHECK(literal_type_size("f64") == 8);
  CHECK_FALSE(literal_type_size("float"));
  CHECK_FALSE(literal_type_size("BF16"));
}

}  // namespace cubind
