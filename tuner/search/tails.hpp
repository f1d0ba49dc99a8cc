// Tails: the sizes of a bucket that no tile divides, where kernels break. One record answers for a whole
// bucket, so its winner is verified at some of them.
#pragma once

#include <functional>
#include <vector>

#include "tuner/spec/kernel_spec.hpp"

namespace cubind {

/// Problems that differ from `measured` in one bucketed dim: the lower edge + 1, a prime inside the bucket,
/// and a size that no tunable of the grid expressions with this dim divides. `usable` says whether the
/// configuration can be launched for a problem. A size that it cannot serve is replaced by the next usable
/// one, or left out. The problems differ from each other and from `measured`.
std::vector<Problem> tail_problems(const KernelSpec& spec, const Problem& measured,
                                   const Configuration& configuration,
                                   const std::function<bool(const Problem&)>& usable);

/// Deterministic trial division; for sizes of problems.
bool is_prime(std::int64_t value);

}  // namespace cubind
