#include <catch2/catch.hpp>
#include <limits>

#include "plan/expr/expression.hpp"
#include "tests/support/refusal_of.hpp"

namespace cubind {
namespace {

ExpressionError error_of(std::string_view text, const Scope& scope = {}) {
  try {
    Expression::parse(text).evaluate(scope);
  } catch (const ExpressionError& error) {
    return error;
  }
  throw std::logic_error("no error");
}

}  // namespace

TEST_CASE("variables are listed once in the order of their first appearance") {
  const Expression expression =
      Expression::parse("N*D*sizeof(T) + D*sizeof(T) + sizeof(f32) + device.sm_count*N");
  CHECK(expression.variables() == std::vector<std::string>{"N", "D", "sizeof(T)", "device.sm_count"});
}

TEST_CASE("a syntax error points into the text") {
  const ExpressionError error = error_of("(N + 1) )", {{"N", 1}});
  CHECK(error.fault() == ExpressionFault::Syntax);
  CHECK(error.code() == ErrorCode::InvalidArgument);
  CHECK(error.column() == 9);
  CHECK(error.where() == "\"(N + 1) )\"");
  CHECK(error.cause() == "column 9: expected an operator, found \")\"\n  (N + 1) )\n          ^");
}

TEST_CASE("Python's words for the logical operators are reported with C's signs") {
  const auto cause = [](std::string_view text) {
    const std::string all = error_of(text, {{"N", 1}}).cause();
    return all.substr(0, all.find('\n'));
  };
  CHECK(cause("N > 1 and N < 3") == "column 7: expected an operator, found \"and\": write &&");
  CHECK(cause("N > 1 or N < 3") == "column 7: expected an operator, found \"or\": write ||");
  CHECK(cause("(N > 1 and N < 3)") == "column 8: expected \")\", found \"and\": write &&");
  CHECK(cause("not N") == "column 1: \"not\" is no operator: write !");
  CHECK(cause("N > 1 && not (N > 3)") == "column 10: \"not\" is no operator: write !");
}

TEST_CASE("other operators of Python are reported with what to write") {
  const auto cause = [](std::string_view text) {
    const std::string all = error_of(text, {{"N", 1}}).cause();
    return all.substr(0, all.find('\n'));
  };
  CHECK(cause("N ** 2") == "column 3: there are no powers: write D * D");
  CHECK(cause("N // 2") == "column 3: a / b drops the fraction already, and cdiv(a, b) rounds up");
  CHECK(cause("N in (1, 2)") ==
        "column 3: expected an operator, found \"in\": compare with each value, as in V == 1 || V == 2");
  CHECK(cause("1 if N else 2") == "column 3: expected an operator, found \"if\": write CONDITION ? A : B");
}

TEST_CASE("Python's words are names where no operator is expected") {
  const Expression expression = Expression::parse("in + not");
  CHECK(expression.variables() == std::vector<std::string>{"in", "not"});
}

TEST_CASE("names in a text are replaced by values") {
  const Expression expression = Expression::parse("HEADS == 1 || cdiv(N, HEADS)*sizeof(T) > device.HEADS");
  const std::string text = expression.text_with({{"HEADS", -4}, {"cdiv", 7}, {"T", 9}, {"device", 1}});
  CHECK(text == "(-4) == 1 || cdiv(N, (-4))*sizeof(T) > device.HEADS");
  CHECK(Expression::parse("N").text_with({{"N", 3}}) == "(3)");
  CHECK(Expression::parse("1 + 2 ").text_with({{"N", 3}}) == "1 + 2 ");
}

TEST_CASE("the caret stays in place in a long text") {
  const ExpressionError error = error_of("1" + std::string(300, ' ') + "?");
  CHECK(error.column() == 303);
  const std::string cause = error.cause();
  const auto caret_line = cause.substr(cause.rfind('\n') + 1);
  const auto text_line = cause.substr(cause.find('\n') + 1);
  CHECK(caret_line.size() <= 82);
  CHECK(text_line.size() >= caret_line.size() - 1);
}

TEST_CASE("an overflow names the operation and all values") {
  const ExpressionError error =
      error_of("N * D + 1", {{"N", std::int64_t{1} << 40}, {"D", std::int64_t{1} << 30}});
  CHECK(error.fault() == ExpressionFault::Overflow);
  CHECK(std::string(error.what()) ==
        "\"N * D + 1\": overflow in 1099511627776 * 1073741824 (column 3), where N = 1099511627776, D = "
        "1073741824");
}

TEST_CASE("a division by zero names the operation and all values") {
  CHECK(error_of("cdiv(N, V)", {{"N", 7}, {"V", 0}}).cause() ==
        "division by zero in cdiv(7, 0) (column 1), where N = 7, V = 0");
  CHECK(error_of("1 + 8 % 0").cause() == "division by zero in 8 % 0 (column 7)");
}

TEST_CASE("overflow of one-sided operations names its operand") {
  const Scope scope{{"A", std::numeric_limits<std::int64_t>::min()}};
  CHECK(error_of("-A", scope).cause().starts_with("overflow in -(-9223372036854775808) (column 1)"));
  CHECK(error_of("abs(A)", scope).cause().starts_with("overflow in abs(-9223372036854775808) (column 1)"));
}

TEST_CASE("an unknown name is reported with the nearest known one") {
  const ExpressionError error = error_of("2 * THREAD", {{"THREADS", 64}, {"N", 1}});
  CHECK(error.fault() == ExpressionFault::UnknownName);
  CHECK(error.column() == 5);
  CHECK(error.cause().starts_with("column 5: there is no \"THREAD\" here, did you mean \"THREADS\"?\n"));
}

TEST_CASE("binding to symbols refuses an unknown name at once") {
  const Expression expression = Expression::parse("1 || M");
  CHECK_THROWS_AS(expression.bind(SymbolTable{"N"}), ExpressionError);
}

TEST_CASE("a wrong function is reported with the right ones") {
  CHECK(error_of("ceildiv(1, 2)").cause().find("there is no function \"ceildiv\"") != std::string::npos);
  CHECK(error_of("Min(1, 2)").cause().find("did you mean \"min\"?") != std::string::npos);
}

TEST_CASE("a chained comparison is refused with what to write") {
  CHECK(error_of("1 < 2 < 3").cause().find("a < b && b < c") != std::string::npos);
}

TEST_CASE("a bound expression reads its slots only") {
  const SymbolTable symbols{"A", "B", "C", "D"};
  const BoundExpression bound = Expression::parse("C - A").bind(symbols);
  CHECK(std::vector<std::uint32_t>(bound.slots().begin(), bound.slots().end()) ==
        std::vector<std::uint32_t>{2, 0});
  const std::int64_t values[] = {1, 999, 10};  // D has no value yet
  CHECK(bound.evaluate(values) == 9);
  CHECK(bound.evaluate_bool(values));
}

TEST_CASE("too few values are an internal error instead of a wild read") {
  const BoundExpression bound = Expression::parse("B").bind(SymbolTable{"A", "B"});
  const std::int64_t values[] = {1};
  CHECK(test::code_of([&] { bound.evaluate(values); }) == ErrorCode::Internal);
}

TEST_CASE("a bound expression outlives the expression and the symbol table") {
  const BoundExpression bound = [] {
    const SymbolTable symbols{"N"};
    return Expression::parse("N * N").bind(symbols);
  }();
  const std::int64_t values[] = {12};
  CHECK(bound.evaluate(values) == 144);
  CHECK(bound.text() == "N * N");
}

TEST_CASE("limits can be lowered") {
  CHECK_THROWS_AS(Expression::parse("1 + 1", {.max_length = 4}), ExpressionError);
  CHECK_THROWS_AS(Expression::parse("((1))", {.max_depth = 2}), ExpressionError);
  CHECK_THROWS_AS(Expression::parse("1 + 1", {.max_instructions = 2}), ExpressionError);
  CHECK(Expression::parse("1 + 1", {.max_length = 5, .max_depth = 1, .max_instructions = 3}).evaluate({}) ==
        2);
}

TEST_CASE("a generous depth limit still cannot overrun the machine's stack") {
  const auto nested = [](int levels) {
    std::string text;
    for (int i = 0; i < levels; ++i) {
      text += "1==1<1+1*(";
    }
    return text + "1" + std::string(static_cast<std::size_t>(levels), ')');
  };
  const ExpressionLimits deep{.max_length = 100000, .max_depth = 1000, .max_instructions = 100000};
  CHECK(Expression::parse(nested(99), deep).evaluate({}) == 1);
  CHECK_THROWS_AS(Expression::parse(nested(200), deep), ExpressionError);
}

}  // namespace cubind
