// What a space is made of: axes, and the checks that a configuration must pass.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace cubind {

/// One dimension of a space: a tunable with its values in declared order, at least one, each once.
struct Axis {
  std::string name;
  std::vector<std::int64_t> values;
};

/// A condition on the values of a few axes.
struct Check {
  std::vector<std::uint32_t> axes;  // that it reads, each once
  /// Given a value for every axis, of which only those of `axes` count. A function of these alone. A fault in
  /// an expression is thrown as Error.
  std::function<bool(std::span<const std::int64_t>)> holds;
};

/// The check that an expression over the axes' names is not 0. Throws ExpressionError where it is none, or
/// reads a name that no axis has.
Check expression_check(const std::string& text, std::span<const Axis> axes);

}  // namespace cubind
