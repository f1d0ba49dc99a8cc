#include "tuner/verify/compare_sums.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.hpp"
#include "plan/narrow_float.hpp"

namespace cubind::verify {
namespace {

struct Output {
  DType type;
  std::span<const std::byte> data;
  std::byte poison;

  bool is_written(std::uint64_t index) const {
    const auto bytes = data.subspan(index * size_of(type), size_of(type));
    return std::ranges::any_of(bytes, [this](std::byte each) { return each != poison; });
  }
};

struct Sum {
  double value = 0;
  double magnitude = 0;
  bool is_written = false;

  void add(const Output& of, std::uint64_t index) {
    if (of.is_written(index)) {
      const double element = floating_element(of.type, of.data, index);
      value += element;
      magnitude += std::fabs(element);
      is_written = true;
    }
  }
};

// The elements of an axis are `stride` apart.
struct Axis {
  std::uint64_t size;
  std::uint64_t stride;

  std::uint64_t first(std::uint64_t line) const { return line / stride * stride * size + line % stride; }
};

std::optional<Comparison> compare_along(const Axis& axis, std::uint64_t elements, const Output& out,
                                        const Output& ref, Bounds bounds) {
  Comparison result{.elements = elements / axis.size, .same_bits = false};
  std::vector<Sum> sums(result.elements), wanted(result.elements);
  double most = 0;
  for (std::uint64_t line = 0; line < result.elements; ++line) {
    for (std::uint64_t i = 0; i < axis.size; ++i) {
      sums[line].add(out, axis.first(line) + i * axis.stride);
      wanted[line].add(ref, axis.first(line) + i * axis.stride);
    }
    most = std::max(most, wanted[line].magnitude);
  }
  for (std::uint64_t line = 0; line < result.elements; ++line) {
    const Sum& sum = sums[line];
    const Sum& ref_sum = wanted[line];
    if (sum.is_written != ref_sum.is_written || !std::isfinite(sum.magnitude + ref_sum.magnitude)) {
      return std::nullopt;
    }
    // Summands that cancel each other need no more than the reference's largest line, whatever they are.
    const double magnitude = std::max(std::min(sum.magnitude, most), ref_sum.magnitude);
    const double value = excess(sum.value, ref_sum.value, {0, bounds.atol + bounds.rtol * magnitude});
    result.mismatches += value > 1 ? 1 : 0;
    if (value > result.worst_excess) {
      result.worst_excess = value;
      result.worst_index = axis.first(line);
    }
  }
  return result;
}

bool write_the_same(const Output& one, const Output& other, std::uint64_t elements) {
  for (std::uint64_t i = 0; i < elements; ++i) {
    if (one.is_written(i) != other.is_written(i)) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::optional<Comparison> compare_sums(DType type, std::span<const std::byte> out,
                                       std::span<const std::byte> ref, std::span<const std::uint64_t> shape,
                                       std::byte poison, Bounds bounds) {
  const Output own{type, out, poison};
  const Output wanted{type, ref, poison};
  std::uint64_t elements = 1;
  for (const std::uint64_t axis : shape) {
    elements *= axis;
  }
  if (out.size() != elements * size_of(type) || ref.size() != out.size()) {
    throw Error(ErrorCode::Internal, "compare", "the axes are not those of the buffer");
  }
  if (!is_floating(type) || write_the_same(own, wanted, elements)) {
    return std::nullopt;
  }
  std::optional<Comparison> best;
  std::uint64_t stride = elements;
  for (const std::uint64_t size : shape) {
    stride /= size;
    if (size == 1 || size == elements) {
      continue;
    }
    const auto found = compare_along({size, stride}, elements, own, wanted, bounds);
    if (found && (!best || found->worst_excess < best->worst_excess)) {
      best = found;
    }
  }
  return best;
}

}  // namespace cubind::verify
