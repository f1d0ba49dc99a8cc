// Values of a plan's bound expressions; where one has none, the error names its place in the spec.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/refuse.hpp"
#include "plan/dtype.hpp"
#include "plan/expr/expression.hpp"

namespace cubind {

/// The place of an expression, spelled only when something is wrong with it.
struct ExpressionLocation {
  const std::string& base;
  std::string_view member = {};
  std::optional<std::size_t> index = std::nullopt;

  std::string text() const {
    return base + std::string(member) + (index ? "/" + std::to_string(*index) : "");
  }
};

/// Throws Error(InvalidArgument): the evaluator quotes the expression, here the place is put before it.
inline std::int64_t evaluate(const BoundExpression& expression, const ExpressionLocation& where,
                             std::span<const std::int64_t> values) {
  try {
    return expression.evaluate(values);
  } catch (const ExpressionError& error) {
    refuse(where.text(), error.what());
  }
}

/// The axes of a grid or block, one to three; the others are 1.
inline std::array<std::int64_t, 3> evaluate_axes(const std::vector<BoundExpression>& expressions,
                                                 const std::string& base, std::string_view member,
                                                 std::span<const std::int64_t> values) {
  std::array<std::int64_t, 3> result{1, 1, 1};
  for (std::size_t i = 0; i < expressions.size(); ++i) {
    result[i] = evaluate(expressions[i], ExpressionLocation{base, member, i}, values);
  }
  return result;
}

/// A buffer's size; throws Error(InvalidArgument) from 2^63 on.
inline std::int64_t checked_bytes(std::int64_t elements, DType type, const std::string& where) {
  const auto size = static_cast<std::int64_t>(size_of(type));
  if (elements > std::numeric_limits<std::int64_t>::max() / size) {
    refuse(where,
           std::to_string(elements) + " elements of " + std::string(to_string(type)) + " exceed 2^63 bytes");
  }
  return elements * size;
}

/// A buffer's axes, outermost first.
inline std::vector<std::int64_t> evaluate_shape(const std::vector<BoundExpression>& shape,
                                                const std::string& base,
                                                std::span<const std::int64_t> values) {
  std::vector<std::int64_t> axes;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    axes.push_back(evaluate(shape[i], ExpressionLocation{base, "", i}, values));
  }
  return axes;
}

/// Whether a launch with this grid is left out.
inline bool has_zero(const std::array<std::int64_t, 3>& axes) {
  return axes[0] == 0 || axes[1] == 0 || axes[2] == 0;
}

}  // namespace cubind
