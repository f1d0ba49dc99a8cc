// The shape of an operator's tensor in the dims of its kernel.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cubind::python {

/// The names of the dims, one for each axis: "B HQ SQ D". In "N* D" the first one is the product of all axes
/// before the others. Words that may follow:
///   f32    float32, whatever the operator's type is
///   rows   an input [B, heads, rows, D] that may also be a view of [B, rows, heads, D]. The stride of its
///          rows, 0 in C order, is a value of the operator (tensor_view.hpp: row_stride).
///   as:N   dense, in the order of input N, which has the word rows: a dense [B, rows, heads, D] if that is
///          a view, else in C order
class ShapePattern {
 public:
  static constexpr std::int64_t kUnknown = -1;

  /// `dims`: the kernel's. Throws Error(InvalidArgument) for a name that is none of them.
  ShapePattern(std::string_view text, std::span<const std::string> dims);

  bool is_float32() const { return is_float32_; }
  bool has_row_stride() const { return has_row_stride_; }
  std::optional<std::size_t> ordered_as() const { return ordered_as_; }

  /// Whether the shape is of this pattern, has elements, and agrees with the dims that are known. Those that
  /// are kUnknown become known, whatever the answer.
  bool match(std::span<const std::int64_t> shape, std::span<std::int64_t> dims) const;

  /// The shape for these dims. `first`: the shape of the operator's first tensor and its pattern, whose first
  /// axes stand where this one has a star.
  std::vector<std::int64_t> shape(std::span<const std::int64_t> dims, const ShapePattern& first,
                                  std::span<const std::int64_t> first_shape) const;

  friend bool operator==(const ShapePattern&, const ShapePattern&) = default;

 private:
  // The axes that the dim with a star stands for.
  std::size_t starred(std::size_t rank) const { return rank + 1 - axes_.size(); }

  std::vector<std::size_t> axes_;  // numbers of dims
  bool has_star_ = false;
  bool is_float32_ = false;
  bool has_row_stride_ = false;
  std::optional<std::size_t> ordered_as_;
};

}  // namespace cubind::python
