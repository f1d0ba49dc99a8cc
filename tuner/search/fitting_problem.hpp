// The problem to measure for a bucket whose representative does not fit into the GPU's memory.
#pragma once

#include <functional>
#include <optional>

#include "tuner/spec/kernel_spec.hpp"

namespace cubind {

/// The first problem that `fits`, stepping down from `problem` (which is not asked) within its bucket; absent
/// where not even the smallest problem of the bucket does. The rule: the bucketed dims take turns in declared
/// order; each turn halves, rounding down, a dim's distance to its bucket's open lower edge, until the dim is
/// at its smallest value. From 4096 in the bucket from 1025 to 4096: 2560, 1792, 1408, ..., 1027, 1025. So
/// the sizes stay round, and mostly the same if the free memory differs a little between two runs. Given a
/// problem that it returned before, it begins again with the first dim. With several bucketed dims the sizes
/// then differ from those of one go, but they are still smaller.
std::optional<Problem> fitting_problem(const KernelSpec& spec, const Problem& problem,
                                       const std::function<bool(const Problem&)>& fits);

}  // namespace cubind
