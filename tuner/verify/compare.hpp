// Compares an output with its reference, element by element.
//
// A norm over the whole output hides a wholly wrong row: at 65536 rows it is 0.4 % of the norm. So every
// element must satisfy |out - ref| <= atol + rtol * |ref|, and NaN or Inf is allowed only where the reference
// has the same value. tuner/worker compares on the device, tests/support/host_verification on the host.
#pragma once

#include <cstdint>

namespace cubind::verify {

/// A tolerance for one problem.
struct Bounds {
  double rtol = 0;
  double atol = 0;
};

/// The excess of an element beyond any tolerance (NaN compared with a number, any difference at tolerance
/// zero). Finite, so that every format can represent it.
inline constexpr double kUnboundedExcess = 1e300;

/// An output compared with its reference.
struct Comparison {
  std::uint64_t elements = 0;
  std::uint64_t mismatches = 0;   // elements with an excess above 1
  double worst_excess = 0;        // largest |out - ref| / (atol + rtol |ref|)
  std::uint64_t worst_index = 0;  // its first index; 0 if the worst excess is 0
  bool same_bits = true;          // byte for byte the same; false if the types differ

  bool passed() const { return mismatches == 0; }
  bool operator==(const Comparison&) const = default;
};

/// |out - ref| / (atol + rtol |ref|) of one element; 0 for two NaN or two equal infinities.
double excess(double out, double ref, Bounds bounds);

}  // namespace cubind::verify
