// Which few configurations serve many problems, besides the default.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace cubind::ctl {

/// By how much more time than the fastest each configuration takes at a problem, as a share. Infinity: it was
/// not measured there, or is not valid.
struct ProblemRegrets {
  std::vector<double> configurations;
  double of_default = 0;  // of the problem's default, which is always there
};

struct VariantSet {
  std::vector<std::size_t> configurations;         // ascending
  std::vector<std::optional<std::size_t>> serves;  // for each problem the best of them; absent: its default
  double worst = 0, mean = 0;                      // regret of the problems
};

/// Of each size from 0 to `most` the set with the least worst regret; no larger ones than the first without
/// regret. A search that takes too long gives the best set that it met: of many configurations, a size above
/// 5 may miss a slightly better one.
std::vector<VariantSet> best_sets(const std::vector<ProblemRegrets>& problems, std::size_t most);

}  // namespace cubind::ctl
