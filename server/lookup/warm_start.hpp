// What a search begins with: the best configurations of neighbouring problems and of other device classes.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "server/lookup/lookup.hpp"

namespace cubind {

inline constexpr std::size_t kWarmStart = 8;  // configurations, at most

/// The configuration of a stored trial; absent: it is not stored.
using TrialConfiguration = std::function<std::optional<Configuration>(const Digest& trial)>;

/// At most kWarmStart configurations of today's spec, each once, whether they are valid for the problem or
/// not: the winners of the nearest problems on the question's device class (four), those of the nearest
/// problems, its own included, on other classes (two), then the other finalists of all these, nearest first,
/// then more winners. Records of a replay device do not count for a real one, nor the other way round.
std::vector<Configuration> warm_start(const Question& question, const IndexSnapshot& index,
                                      const TrialConfiguration& configuration_of);

}  // namespace cubind
