// What a search begins with: the best that was tried for neighbouring problems and on other device classes.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "server/lookup/lookup.hpp"

namespace cubind {

inline constexpr std::size_t kMostHints = 32;  // configurations, at most

/// The configurations that a record's winner was chosen from, fastest first; empty: nothing of it is stored.
using TriedFor = std::function<std::vector<Configuration>(const RecordRow&)>;

/// At most kMostHints configurations of today's spec, each once, whether they are valid for the problem or
/// not: the winners of the four nearest problems, then the fastest after the winner for each of these,
/// then what was next, and so on; where that is not enough, the winners of further problems. Another device
/// class counts as two doublings of a dim. Records of a replay device do not count for a real one, nor the
/// other way round.
std::vector<Configuration> search_hints(const Question& question, const IndexSnapshot& index,
                                        const TriedFor& tried_for);

}  // namespace cubind
