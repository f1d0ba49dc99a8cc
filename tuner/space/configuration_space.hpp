// All configurations of a kernel for one problem, without listing them: their count, a number for each and
// back, uniform draws, neighbours.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/interrupt.hpp"
#include "base/random.hpp"
#include "tuner/space/check.hpp"
#include "tuner/space/diagram.hpp"

namespace cubind {

struct SpaceLimits {
  std::uint64_t max_edges = 4'000'000;  // of a diagram under construction; about 50 bytes each at the worst
  std::uint64_t max_draws = 1'000'000;  // for one valid configuration, where checks had to be put off
};

/// A configuration is valid where every check holds. Where a check faults and none is false, the fault is
/// thrown, by the constructor or, for checks that were put off, by who meets the configuration.
///
/// A diagram numbers the configurations in canonical order (declared order of axes and values, last axis
/// fastest). Where that diagram would exceed the limit, an order of the axes is taken for which it does not.
/// Where there is none either, checks that tie far-apart axes are put off: the space then is not exact(),
/// numbers have gaps, draws are rejected until the checks that were put off hold too, and the count is not
/// known.
///
/// Immutable: const methods may be called from several threads at once.
class ConfigurationSpace {
 public:
  /// Throws Error(InvalidArgument) for an axis without values or more than 64 axes and
  /// Error(ResourceExhausted) for more than 2^62 valid configurations. `interrupt` is asked during
  /// construction, which takes no more than SpaceLimits::max_edges steps for each diagram tried.
  ConfigurationSpace(std::vector<Axis> axes, std::vector<Check> checks, const SpaceLimits& limits = {},
                     const Interrupt& interrupt = {});

  const std::vector<Axis>& axes() const { return axes_; }
  /// Whether each number below size() is a valid configuration.
  bool exact() const { return put_off_.empty(); }
  /// Numbers are below it.
  std::uint64_t size() const { return diagram_.count(); }
  /// How many configurations are valid. Throws Error(ResourceExhausted) where the space is not exact().
  std::uint64_t count() const;
  /// Bytes that the diagram takes.
  std::size_t memory() const { return diagram_.memory(); }

  bool valid(std::uint64_t number) const;
  Point point(std::uint64_t number) const { return diagram_.unrank(number); }
  std::vector<std::int64_t> values(const Point& point) const;
  /// Absent where the configuration is not valid.
  std::optional<std::uint64_t> number(const Point& point) const;
  /// The number by values in declared order of the axes; absent too if a value is not of its axis.
  std::optional<std::uint64_t> number_of_values(const std::vector<std::int64_t>& values) const;

  /// Each valid configuration with the same probability; absent where there is none. Throws
  /// Error(ResourceExhausted) where SpaceLimits::max_draws met none.
  std::optional<std::uint64_t> sample(Random& random) const;

  /// The valid configurations that differ in one axis, by axis and value.
  std::vector<std::uint64_t> neighbours(std::uint64_t number) const;

 private:
  void build(std::vector<Check> checks, const Interrupt& interrupt);
  bool put_off_hold(const Point& point) const;

  const std::vector<Axis> axes_;
  const SpaceLimits limits_;
  Diagram diagram_;
  std::vector<Check> put_off_;
};

}  // namespace cubind
