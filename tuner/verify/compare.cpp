#include "tuner/verify/compare.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.hpp"
#include "tuner/verify/element.hpp"

namespace cubind::verify {
namespace {

double bounded(double difference, double reference_magnitude, Bounds bounds) {
  if (difference == 0) {
    return 0;
  }
  const double allowed = bounds.atol + bounds.rtol * reference_magnitude;
  return allowed > 0 ? std::min(difference / allowed, kUnboundedExcess) : kUnboundedExcess;
}

double integer_excess(std::int64_t out, std::int64_t ref, Bounds bounds) {
  const auto a = static_cast<std::uint64_t>(out);
  const auto b = static_cast<std::uint64_t>(ref);
  return bounded(static_cast<double>(out > ref ? a - b : b - a), std::fabs(static_cast<double>(ref)), bounds);
}

}  // namespace

double excess(double out, double ref, Bounds bounds) {
  if (std::isnan(ref) || std::isnan(out)) {
    return std::isnan(ref) && std::isnan(out) ? 0 : kUnboundedExcess;
  }
  if (std::isinf(ref) || std::isinf(out)) {
    return out == ref ? 0 : kUnboundedExcess;
  }
  return bounded(std::fabs(out - ref), std::fabs(ref), bounds);
}

Comparison compare(DType out_type, std::span<const std::byte> out, DType ref_type,
                   std::span<const std::byte> ref, Bounds bounds) {
  Comparison result;
  result.elements = out.size() / size_of(out_type);
  if (result.elements != ref.size() / size_of(ref_type)) {
    throw Error(ErrorCode::Internal, "compare", "output and reference differ in their number of elements");
  }
  const bool integers = !is_floating(out_type) && !is_floating(ref_type);
  for (std::uint64_t i = 0; i < result.elements; ++i) {
    const double value =
        integers ? integer_excess(element_as_integer(out_type, out, i), element_as_integer(ref_type, ref, i),
                                  bounds)
                 : excess(element_as_double(out_type, out, i), element_as_double(ref_type, ref, i), bounds);
    if (value > 1) {
      ++result.mismatches;
    }
    if (value > result.worst_excess) {
      result.worst_excess = value;
      result.worst_index = i;
    }
  }
  result.same_bits = out_type == ref_type && std::memcmp(out.data(), ref.data(), out.size()) == 0;
  return result;
}

}  // namespace cubind::verify
