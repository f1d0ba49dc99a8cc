// A kernel's constraints and launch limits for one problem, as checks on the values of its tunables alone.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "plan/plan_program.hpp"
#include "tuner/space/check.hpp"
#include "tuner/spec/kernel_spec.hpp"

namespace cubind {

/// In order: the constraints as declared, then the launch limits. Immutable: const methods may be called from
/// several threads at once. Faults of expressions are Error(InvalidArgument) at the spec's pointer, without
/// its file.
class SpaceChecks {
 public:
  SpaceChecks(const KernelSpec& spec, const Problem& problem, const DeviceConstants& device);

  std::size_t count() const { return program_.check_count(); }
  /// Which tunables the check reads, by their position in the spec.
  std::vector<std::uint32_t> tunables(std::size_t check) const;
  /// `tunables`: a value for each, in declared order.
  bool holds(std::size_t check, std::span<const std::int64_t> tunables) const;
  PlanProgram::CheckName name(std::size_t check) const { return program_.check_name(check); }
  /// Why it does not hold: "grid 1 x 1 x 70000 leaves 0 to 65535 in z where B = 70000".
  std::string describe(std::size_t check, std::span<const std::int64_t> tunables) const;

 private:
  std::vector<std::int64_t> values_with(std::span<const std::int64_t> tunables) const;

  const PlanProgram program_;
  const std::vector<std::int64_t> values_;
};

/// One of the checks, for a ConfigurationSpace, which keeps all of them alive.
Check check_of(const std::shared_ptr<const SpaceChecks>& checks, std::size_t index);

/// The tunables with their values.
std::vector<Axis> axes_of(const KernelSpec& spec);

/// The first value of each tunable.
Configuration first_configuration(const KernelSpec& spec);

}  // namespace cubind
