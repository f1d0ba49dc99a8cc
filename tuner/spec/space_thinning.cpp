#include "tuner/spec/space_thinning.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "base/error.hpp"
#include "tuner/plan/plan_program.hpp"
#include "tuner/space/configuration_space.hpp"

namespace cubind {
namespace {

// A space is made for each condition in turn: what a person waits for is counted with less effort than what a
// search needs.
constexpr SpaceLimits kLimits{.max_edges = 500'000, .max_draws = 0};

// The first value of each tunable: names and order for a PlanProgram whose values are then overwritten.
Configuration any_configuration(const KernelSpec& spec) {
  Configuration configuration;
  for (const Tunable& tunable : spec.tunables) {
    configuration.values.push_back({tunable.name, tunable.values.front()});
  }
  return configuration;
}

// Constraints and launch limits, in this order, as checks on the values of the tunables.
class Conditions {
 public:
  Conditions(const KernelSpec& spec, const Problem& problem, const DeviceConstants& device)
      : program_(spec.plan_template(problem, any_configuration(spec)), problem, any_configuration(spec),
                 device) {
    for (const Tunable& tunable : spec.tunables) {
      axes_.push_back({tunable.name, tunable.values});
    }
  }

  std::size_t count() const { return program_.check_count(); }
  const PlanProgram& program() const { return program_; }

  Check check(std::size_t index) const {
    const std::size_t first = program_.first_tunable();
    Check check;
    for (const std::uint32_t slot : program_.check_slots(index)) {
      if (slot >= first && slot < first + program_.tunable_count()) {
        check.axes.push_back(static_cast<std::uint32_t>(slot - first));
      }
    }
    check.holds = [this, index, first](std::span<const std::int64_t> tunables) {
      std::vector<std::int64_t> values = program_.initial_values();
      std::ranges::copy(tunables, values.begin() + static_cast<std::ptrdiff_t>(first));
      return program_.holds(index, values);
    };
    return check;
  }

  ConfigurationSpace space(std::vector<Check> checks, const SpaceLimits& limits,
                           const Interrupt& interrupt) const {
    return {axes_, std::move(checks), limits, interrupt};
  }

 private:
  PlanProgram program_;
  std::vector<Axis> axes_;
};

enum class Counted { Yes, Faults, TooTangled };

Counted count(const Conditions& conditions, const std::vector<Check>& checks, const Interrupt& interrupt,
              std::uint64_t& left) {
  try {
    left = conditions.space(checks, kLimits, interrupt).count();
    return Counted::Yes;
  } catch (const Error& error) {
    if (error.where() != "space" && !error.where().starts_with("/")) {
      throw;  // of the interrupt
    }
    return error.code() == ErrorCode::InvalidArgument ? Counted::Faults : Counted::TooTangled;
  }
}

}  // namespace

std::vector<Thinning> thin_out(const KernelSpec& spec, const Problem& problem, const DeviceConstants& device,
                               const Interrupt& interrupt) {
  const Conditions conditions(spec, problem, device);
  std::vector<Thinning> steps;
  std::vector<Check> checks;
  std::uint64_t left = 0;
  if (count(conditions, checks, interrupt, left) != Counted::Yes) {
    return steps;
  }
  for (std::size_t i = 0; i < conditions.count() && left > 0; ++i) {
    checks.push_back(conditions.check(i));
    const std::uint64_t before = left;
    const Counted counted = count(conditions, checks, interrupt, left);
    if (counted == Counted::TooTangled) {
      break;
    }
    const bool is_constraint = i < spec.constraints.size();
    if (counted == Counted::Yes && (is_constraint || left < before)) {
      auto [place, condition] = conditions.program().check_name(i);
      steps.push_back({std::move(place), std::move(condition), before - left, left});
    }
  }
  return steps;
}

std::vector<Configuration> valid_from(const KernelSpec& spec, const Problem& problem,
                                      const DeviceConstants& device, std::uint64_t first, std::uint64_t count,
                                      const Interrupt& interrupt) {
  const Conditions conditions(spec, problem, device);
  std::vector<Check> checks;
  for (std::size_t i = 0; i < conditions.count(); ++i) {
    checks.push_back(conditions.check(i));
  }
  const ConfigurationSpace space = conditions.space(std::move(checks), {}, interrupt);
  const std::uint64_t end = std::min(space.count(), first + std::min(count, ~first));
  std::vector<Configuration> valid;
  for (std::uint64_t number = first; number < end; ++number) {
    const std::vector<std::int64_t> values = space.values(space.point(number));
    Configuration& configuration = valid.emplace_back();
    for (std::size_t i = 0; i < values.size(); ++i) {
      configuration.values.push_back({spec.tunables[i].name, values[i]});
    }
  }
  return valid;
}

}  // namespace cubind
