#include "python/extension/shape_pattern.hpp"

#include <algorithm>
#include <sstream>

#include "base/error.hpp"

namespace cubind::python {
namespace {

bool agree(std::int64_t& known, std::int64_t value) {
  if (known == ShapePattern::kUnknown) {
    known = value;
  }
  return known == value;
}

}  // namespace

ShapePattern::ShapePattern(std::string_view text, std::span<const std::string> dims) {
  std::istringstream words{std::string(text)};
  for (std::string word; words >> word;) {
    if (word == "f32") {
      is_float32_ = true;
      continue;
    }
    if (word == "rows") {
      has_row_stride_ = true;
      continue;
    }
    if (word.starts_with("as:") && word.size() == 4) {
      ordered_as_ = static_cast<std::size_t>(word[3] - '0');
      continue;
    }
    if (axes_.empty() && word.ends_with('*')) {
      has_star_ = true;
      word.pop_back();
    }
    const auto found = std::ranges::find(dims, word);
    if (found == dims.end()) {
      throw Error(ErrorCode::InvalidArgument, std::string(text), "the kernel has no dim " + word);
    }
    axes_.push_back(static_cast<std::size_t>(found - dims.begin()));
  }
  if ((has_row_stride_ || ordered_as_) && axes_.size() != 4) {
    throw Error(ErrorCode::InvalidArgument, std::string(text), "an order of rows needs four axes");
  }
}

bool ShapePattern::match(std::span<const std::int64_t> shape, std::span<std::int64_t> dims) const {
  if (has_star_ ? shape.size() + 1 < axes_.size() : shape.size() != axes_.size()) {
    return false;
  }
  std::size_t axis = 0;
  std::int64_t elements = 1;
  if (has_star_) {
    for (; axis < starred(shape.size()); ++axis) {
      elements *= shape[axis];
    }
    if (!agree(dims[axes_.front()], elements)) {
      return false;
    }
  }
  for (std::size_t i = has_star_ ? 1 : 0; i < axes_.size(); ++i, ++axis) {
    elements *= shape[axis];
    if (!agree(dims[axes_[i]], shape[axis])) {
      return false;
    }
  }
  return elements > 0;
}

std::vector<std::int64_t> ShapePattern::shape(std::span<const std::int64_t> dims, const ShapePattern& first,
                                              std::span<const std::int64_t> first_shape) const {
  std::vector<std::int64_t> made;
  if (has_star_) {
    const auto axes = first_shape.first(first.starred(first_shape.size()));
    made.assign(axes.begin(), axes.end());
  }
  for (std::size_t i = has_star_ ? 1 : 0; i < axes_.size(); ++i) {
    made.push_back(dims[axes_[i]]);
  }
  return made;
}

}  // namespace cubind::python
