// The valid configurations of a space as a decision diagram: one level for each axis, one node for each set
// of ways to go on. Configurations that can be continued alike share their nodes, so the diagram of 10^12
// configurations may have a thousand. Each node knows how many configurations are below it, which makes
// counting, numbering and drawing uniformly a walk from the root.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/interrupt.hpp"
#include "tuner/space/check.hpp"

namespace cubind {

/// Steps of a construction between two questions to its Interrupt.
inline constexpr std::uint64_t kBetweenInterrupts = 4096;

/// For each axis the position of its value in Axis::values, in declared order of the axes.
using Point = std::vector<std::uint32_t>;

/// Immutable: const methods may be called from several threads at once.
class Diagram {
 public:
  /// Absent where more than `max_edges` steps from a node would have to be looked at. Throws
  /// Error(ResourceExhausted) where more than 2^62 configurations are valid, and what a check throws for a
  /// configuration for which no other check is false: a fault counts only where nothing else excludes the
  /// configuration. `interrupt` is asked after every kBetweenInterrupts steps.
  static std::optional<Diagram> build(std::span<const Axis> axes, std::span<const Check> checks,
                                      std::vector<std::uint32_t> order, std::uint64_t max_edges,
                                      const Interrupt& interrupt);

  std::uint64_t count() const { return count_; }
  /// Bytes held.
  std::size_t memory() const;

  /// The number of the configuration, below count(), in the lexicographic order of the levels; absent for one
  /// that is not valid.
  std::optional<std::uint64_t> rank(const Point& point) const;
  /// The configuration with this number.
  Point unrank(std::uint64_t rank) const;

 private:
  friend class DiagramBuilder;

  static constexpr std::uint32_t kDead = ~std::uint32_t{0};

  struct Level {
    std::uint32_t axis = 0;
    std::uint32_t degree = 0;
    std::vector<std::uint32_t> child;   // node * degree + position: a node of the next level, or kDead
    std::vector<std::uint64_t> before;  // node * (degree + 1) + position: configurations at earlier positions
  };

  std::vector<Level> levels_;
  std::uint32_t root_ = kDead;
  std::uint64_t count_ = 0;
};

}  // namespace cubind
