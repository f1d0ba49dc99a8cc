// The shape of an operator's tensor in the dims of its kernel.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plan/dtype.hpp"

namespace cubind::python {

/// The names of the dims or numbers, one for each axis: "B HQ SQ D". In "N* D" the first one is the product
/// of all axes before the others; "N+1" is one more than the dim; "N/128" is the number of 128s that hold N,
/// which an earlier tensor told. Words that may follow:
///   f32, i64, ...  elements of this type, whatever the operator's type is
///   rows           an input [B, heads, rows, D] that may also be a view of [B, rows, heads, D]. The stride
///                  of its rows, 0 in C order, is a value of the operator (tensor_view.hpp: row_stride).
///   as:N           dense, in the order of input N, which has the word rows: a dense [B, rows, heads, D] if
///                  that is a view, else in C order
///   in:N           an output that is input N, which the kernel overwrites
///   zero           an output that is cleared before the launch
class ShapePattern {
 public:
  static constexpr std::int64_t kUnknown = -1;

  /// `dims`: the kernel's. Throws Error(InvalidArgument) for a word that is none of all these.
  ShapePattern(std::string_view text, std::span<const std::string> dims);

  /// Absent: the operator's.
  std::optional<DType> type() const { return type_; }
  bool has_row_stride() const { return has_row_stride_; }
  bool is_zero() const { return is_zero_; }
  std::optional<std::size_t> ordered_as() const { return ordered_as_; }
  std::optional<std::size_t> memory_of() const { return memory_of_; }

  /// Whether the shape is of this pattern, has elements, and agrees with the dims that are known. Those that
  /// are kUnknown become known, whatever the answer.
  bool match(std::span<const std::int64_t> shape, std::span<std::int64_t> dims) const;

  /// The sizes that the star stands for; none without a star.
  std::span<const std::int64_t> leading(std::span<const std::int64_t> shape) const;

  /// The input whose leading sizes the star of this pattern stands for: with the same axes, else with the
  /// same first one. Absent if there is none: then the star is one axis.
  std::optional<std::size_t> source_of_star(std::span<const ShapePattern> inputs) const;

  /// The shape for these dims; `leading`: the sizes that the star stands for.
  std::vector<std::int64_t> shape(std::span<const std::int64_t> dims,
                                  std::optional<std::span<const std::int64_t>> leading) const;

  friend bool operator==(const ShapePattern&, const ShapePattern&) = default;

 private:
  // A dim by its number, or a size.
  struct Axis {
    std::optional<std::size_t> dim;
    std::int64_t size = kUnknown;
    std::int64_t more = 0;  // than the dim
    std::int64_t per = 1;   // of the dim

    std::int64_t of(std::int64_t value) const { return (value + per - 1) / per + more; }

    bool agrees(std::int64_t value, std::span<std::int64_t> dims) const;
    friend bool operator==(const Axis&, const Axis&) = default;
  };

  bool add_axis(std::string word, std::span<const std::string> dims);
  bool add_word(std::string_view word);

  std::vector<Axis> axes_;
  bool has_star_ = false;
  std::optional<DType> type_;
  bool has_row_stride_ = false;
  bool is_zero_ = false;
  std::optional<std::size_t> ordered_as_, memory_of_;
};

}  // namespace cubind::python
