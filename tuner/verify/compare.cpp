#include "tuner/verify/compare.hpp"

#include <algorithm>
#include <cmath>

namespace cubind::verify {
namespace {

double bounded(double difference, double reference_magnitude, Bounds bounds) {
  if (difference == 0) {
    return 0;
  }
  const double allowed = bounds.atol + bounds.rtol * reference_magnitude;
  return allowed > 0 ? std::min(difference / allowed, kUnboundedExcess) : kUnboundedExcess;
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

}  // namespace cubind::verify
