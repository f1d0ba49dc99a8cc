// Simulated annealing (Kirkpatrick, Gelatt and Vecchi, 1983): a walk through a space by what was timed,
// without a model. It leaves a plateau on which a model, whose goal is the fastest, still expects
// something.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/random.hpp"
#include "tuner/search/strategy.hpp"
#include "tuner/search/tried.hpp"
#include "tuner/space/configuration_space.hpp"

namespace cubind {

/// The walk's next step: a valid configuration that was not tried, near where its trials have led it.
/// `trials`: where it begins, then its steps so far, in order; those without a time it did not take. A step
/// to a slower configuration is taken by chance, the seldomer the slower; `seed` decides, for each
/// configuration by itself. Absent where nothing was timed or nothing untried is met nearby.
std::optional<std::uint64_t> next_step(const ConfigurationSpace& space, std::span<const Observation> trials,
                                       const Tried& tried, std::uint64_t seed, Random& random);

}  // namespace cubind
