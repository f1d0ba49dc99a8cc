#include "tuner/spec/space_checks.hpp"

#include <algorithm>

namespace cubind {

// The first configuration gives a PlanProgram names and order; its values are then overwritten.
SpaceChecks::SpaceChecks(const KernelSpec& spec, const Problem& problem, const DeviceConstants& device)
    : program_(spec.plan_template(problem, first_configuration(spec)), problem, first_configuration(spec),
               device),
      values_(program_.initial_values()) {}

std::vector<std::uint32_t> SpaceChecks::tunables(std::size_t check) const {
  const std::size_t first = program_.first_tunable();
  std::vector<std::uint32_t> read;
  for (const std::uint32_t slot : program_.check_slots(check)) {
    if (slot >= first && slot < first + program_.tunable_count()) {
      read.push_back(static_cast<std::uint32_t>(slot - first));
    }
  }
  return read;
}

std::vector<std::int64_t> SpaceChecks::values_with(std::span<const std::int64_t> tunables) const {
  std::vector<std::int64_t> values = values_;
  std::ranges::copy(tunables, values.begin() + static_cast<std::ptrdiff_t>(program_.first_tunable()));
  return values;
}

bool SpaceChecks::holds(std::size_t check, std::span<const std::int64_t> tunables) const {
  return program_.holds(check, values_with(tunables));
}

std::string SpaceChecks::describe(std::size_t check, std::span<const std::int64_t> tunables) const {
  const std::string text = program_.describe(check, values_with(tunables));
  const auto colon = text.starts_with('/') ? text.find(": ") : std::string::npos;
  const bool adds_a_location = !name(check).where.starts_with(text.substr(0, colon));
  return colon == std::string::npos || adds_a_location ? text : text.substr(colon + 2);
}

Check check_of(const std::shared_ptr<const SpaceChecks>& checks, std::size_t index) {
  return {checks->tunables(index),
          [checks, index](std::span<const std::int64_t> tunables) { return checks->holds(index, tunables); }};
}

std::vector<Axis> axes_of(const KernelSpec& spec) {
  std::vector<Axis> axes;
  for (const Tunable& tunable : spec.tunables) {
    axes.push_back({tunable.name, tunable.values});
  }
  return axes;
}

Configuration first_configuration(const KernelSpec& spec) {
  Configuration configuration;
  for (const Tunable& tunable : spec.tunables) {
    configuration.values.push_back({tunable.name, tunable.values.front()});
  }
  return configuration;
}

}  // namespace cubind
