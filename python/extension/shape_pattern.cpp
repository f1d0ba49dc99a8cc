#include "python/extension/shape_pattern.hpp"

#include <algorithm>
#include <sstream>

#include "base/error.hpp"

namespace cubind::python {

bool ShapePattern::Axis::agrees(std::int64_t value, std::span<std::int64_t> dims) const {
  if (!dim) {
    return value == size;
  }
  std::int64_t& known = dims[*dim];
  if (known == kUnknown && per == 1) {
    known = value - more;
  }
  return known != kUnknown && of(known) == value;
}

ShapePattern::ShapePattern(std::string_view text, std::span<const std::string> dims) {
  std::istringstream words{std::string(text)};
  for (std::string word; words >> word;) {
    if (!add_axis(word, dims) && !add_word(word)) {
      throw Error(ErrorCode::InvalidArgument, std::string(text), "the kernel has no dim " + word);
    }
  }
  if ((has_row_stride_ || ordered_as_) && axes_.size() != 4) {
    throw Error(ErrorCode::InvalidArgument, std::string(text), "an order of rows needs four axes");
  }
}

bool ShapePattern::add_axis(std::string word, std::span<const std::string> dims) {
  const bool has_star = axes_.empty() && word.ends_with('*');
  if (has_star) {
    word.pop_back();
  }
  const bool has_more = word.ends_with("+1");
  word.resize(word.size() - (has_more ? 2 : 0));
  constexpr std::string_view kPer = "/128";
  const bool is_part = word.ends_with(kPer);
  word.resize(word.size() - (is_part ? kPer.size() : 0));
  const auto found = std::ranges::find(dims, word);
  if (found != dims.end()) {
    axes_.push_back({.dim = static_cast<std::size_t>(found - dims.begin()),
                     .more = has_more ? 1 : 0,
                     .per = is_part ? 128 : 1});
  } else if (!has_more && !word.empty() && word.size() < 19 &&
             word.find_first_not_of("0123456789") == std::string::npos) {
    axes_.push_back({.dim = std::nullopt, .size = std::stoll(word)});
  } else {
    return false;
  }
  has_star_ = has_star_ || has_star;
  return true;
}

bool ShapePattern::add_word(std::string_view word) {
  const auto number = [&](std::string_view before) {
    const bool is_it = word.starts_with(before) && word.size() == before.size() + 1;
    return is_it ? std::optional<std::size_t>(word.back() - '0') : std::nullopt;
  };
  if (const auto as = number("as:")) {
    ordered_as_ = as;
  } else if (const auto in = number("in:")) {
    memory_of_ = in;
  } else if (const std::optional<DType> type = parse_dtype(word)) {
    type_ = type;
  } else if (word == "rows") {
    has_row_stride_ = true;
  } else if (word == "zero") {
    is_zero_ = true;
  } else {
    return false;
  }
  return true;
}

bool ShapePattern::match(std::span<const std::int64_t> shape, std::span<std::int64_t> dims) const {
  if (has_star_ ? shape.size() + 1 < axes_.size() : shape.size() != axes_.size()) {
    return false;
  }
  std::int64_t elements = 1;
  for (const std::int64_t size : leading(shape)) {
    elements *= size;
  }
  if (has_star_ && !axes_.front().agrees(elements, dims)) {
    return false;
  }
  for (std::size_t i = has_star_ ? 1 : 0; i < axes_.size(); ++i) {
    const std::int64_t size = shape[shape.size() - axes_.size() + i];
    elements *= size;
    if (!axes_[i].agrees(size, dims)) {
      return false;
    }
  }
  return elements > 0;
}

std::span<const std::int64_t> ShapePattern::leading(std::span<const std::int64_t> shape) const {
  return shape.first(has_star_ ? shape.size() + 1 - axes_.size() : 0);
}

std::optional<std::size_t> ShapePattern::source_of_star(std::span<const ShapePattern> inputs) const {
  const auto first_that = [&](const auto& fits) -> std::optional<std::size_t> {
    const auto found = std::ranges::find_if(
        inputs, [&](const ShapePattern& input) { return input.has_star_ && fits(input); });
    return found == inputs.end() ? std::nullopt : std::optional<std::size_t>(found - inputs.begin());
  };
  if (!has_star_) {
    return std::nullopt;
  }
  const auto alike = first_that([&](const ShapePattern& input) { return input.axes_ == axes_; });
  return alike ? alike
               : first_that([&](const ShapePattern& input) { return input.axes_.front() == axes_.front(); });
}

std::vector<std::int64_t> ShapePattern::shape(std::span<const std::int64_t> dims,
                                              std::optional<std::span<const std::int64_t>> leading) const {
  std::vector<std::int64_t> made;
  if (leading) {
    made.assign(leading->begin(), leading->end());
  }
  for (std::size_t i = leading ? 1 : 0; i < axes_.size(); ++i) {
    made.push_back(axes_[i].dim ? axes_[i].of(dims[*axes_[i].dim]) : axes_[i].size);
  }
  return made;
}

}  // namespace cubind::python
