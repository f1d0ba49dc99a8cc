// The configurations that a search begins with: the best of neighboring problems and other device classes.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "server/lookup/lookup.hpp"

namespace cubind {

inline constexpr std::size_t kMostHints = 32;  // the largest number of configurations

/// The configurations that a record's winner was chosen from, fastest first; empty if none is stored.
using TriedFor = std::function<std::vector<Configuration>(const RecordRow&)>;

/// At most kMostHints different configurations of the current spec, valid for the problem or not: the winners
/// of the four nearest problems, then the second best of each of these, then the third, and so on; if these
/// are too few, the winners of further problems. Another device class counts as two doublings of a dim.
/// Records of a replay device do not count for a real one, nor the other way round.
std::vector<Configuration> search_hints(const Question& question, const IndexSnapshot& index,
                                        const TriedFor& tried_for);

}  // namespace cubind
