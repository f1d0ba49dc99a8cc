#include <atomic>
#include <catch2/catch.hpp>
#include <thread>
#include <vector>

#include "base/file.hpp"
#include "base/json.hpp"
#include "plan/expr/expression.hpp"
#include "tests/support/paths.hpp"

namespace cubind {
namespace {

struct Vector {
  std::string expression;
  std::vector<std::pair<std::string, std::int64_t>> variables;
  std::string outcome;  // the result, or the kind of error
};

const std::vector<Vector>& vectors() {
  static const std::vector<Vector> all = [] {
    const auto path = test::source_dir() / "schemas" / "expression_vectors.json";
    const OrderedJson document = parse_json_strict(read_file(path), path.filename().string());
    std::vector<Vector> result;
    for (const auto& entry : document.at("vectors")) {
      Vector vector;
      vector.expression = entry.at("expression");
      if (entry.contains("variables")) {
        for (const auto& [name, value] : entry["variables"].items()) {
          vector.variables.emplace_back(name, value.get<std::int64_t>());
        }
      }
      vector.outcome = entry.contains("error") ? entry["error"].get<std::string>()
                                               : std::to_string(entry.at("result").get<std::int64_t>());
      result.push_back(std::move(vector));
    }
    return result;
  }();
  return all;
}

Scope scope_of(const Vector& vector) {
  Scope scope;
  for (const auto& [name, value] : vector.variables) {
    scope.set(name, value);
  }
  return scope;
}

template <typename Evaluate>
std::string value_or_fault(const Evaluate& evaluate) {
  try {
    return std::to_string(evaluate());
  } catch (const ExpressionError& error) {
    return std::string(to_string(error.fault()));
  }
}

// Slots in reverse order and with strangers between them, so that a mix-up of slot and index shows.
std::string bound_outcome(const Vector& vector) {
  SymbolTable symbols;
  std::vector<std::int64_t> values;
  for (auto it = vector.variables.rbegin(); it != vector.variables.rend(); ++it) {
    symbols.add("stranger_" + std::to_string(values.size()));
    values.push_back(-77);
    symbols.add(it->first);
    values.push_back(it->second);
  }
  return value_or_fault([&] { return Expression::parse(vector.expression).bind(symbols).evaluate(values); });
}

}  // namespace

TEST_CASE("there are at least 150 conformance vectors and every kind of error occurs") {
  CHECK(vectors().size() >= 150);
  for (const auto fault : {ExpressionFault::Syntax, ExpressionFault::Limit, ExpressionFault::UnknownName,
                           ExpressionFault::Overflow, ExpressionFault::DivisionByZero}) {
    CHECK(std::ranges::any_of(vectors(),
                              [fault](const Vector& vector) { return vector.outcome == to_string(fault); }));
  }
}

TEST_CASE("every conformance vector holds when names are looked up in a scope") {
  for (const Vector& vector : vectors()) {
    INFO(vector.expression);
    CHECK(value_or_fault([&] { return Expression::parse(vector.expression).evaluate(scope_of(vector)); }) ==
          vector.outcome);
  }
}

TEST_CASE("every conformance vector holds when names are bound to slots") {
  for (const Vector& vector : vectors()) {
    INFO(vector.expression);
    CHECK(bound_outcome(vector) == vector.outcome);
  }
}

TEST_CASE("the same expressions evaluate alike on eight threads at once") {
  std::vector<std::pair<const Vector*, Expression>> parsed;
  for (const Vector& vector : vectors()) {
    if (vector.outcome != "syntax" && vector.outcome != "limit") {
      parsed.emplace_back(&vector, Expression::parse(vector.expression));
    }
  }
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&parsed, &wrong] {
      for (int round = 0; round < 20; ++round) {
        for (const auto& [vector, expression] : parsed) {
          const Scope scope = scope_of(*vector);
          wrong += value_or_fault([&] { return expression.evaluate(scope); }) != vector->outcome;
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  CHECK(wrong == 0);
}

}  // namespace cubind
