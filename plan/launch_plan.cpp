#include "plan/launch_plan.hpp"

#include <algorithm>
#include <limits>

#include "base/refuse.hpp"
#include "base/text.hpp"
#include "plan/plan_program.hpp"

namespace cubind {

struct PlanEvaluator::Compiled {
  PlanProgram program;
};

PlanEvaluator::PlanEvaluator(PlanTemplate plan, const Problem& problem, const Configuration& configuration,
                             const DeviceConstants& device)
    : compiled_(std::make_unique<Compiled>(
          Compiled{PlanProgram(std::move(plan), problem, configuration, device)})) {}

PlanEvaluator::~PlanEvaluator() = default;
PlanEvaluator::PlanEvaluator(PlanEvaluator&&) noexcept = default;
PlanEvaluator& PlanEvaluator::operator=(PlanEvaluator&&) noexcept = default;

PlanResult PlanEvaluator::evaluate(const Problem& problem, const Configuration& configuration) const {
  const PlanProgram& program = compiled_->program;
  std::vector<std::int64_t> values = program.initial_values();
  program.set_problem(problem, values);
  program.set_configuration(configuration, values);
  for (std::size_t check = 0; check < program.check_count(); ++check) {
    if (!program.holds(check, values)) {
      return {std::nullopt, program.describe(check, values)};
    }
  }
  return {program.plan(values), {}};
}

std::optional<std::int64_t> element_count(std::span<const std::int64_t> shape) {
  std::int64_t count = 1;
  for (const std::int64_t axis : shape) {
    if (axis < 0 || (axis > 0 && count > std::numeric_limits<std::int64_t>::max() / axis)) {
      return std::nullopt;
    }
    count *= axis;
  }
  return count;
}

DeviceConstants device_constants_of(const std::vector<NamedValue>& values, std::string_view field) {
  DeviceConstants constants;
  for (const auto& [name, member] : kDeviceConstants) {
    const auto found = std::ranges::find(values, name, &NamedValue::name);
    if (found == values.end()) {
      refuse(field, quoted(name) + " is missing");
    }
    constants.*member = found->value;
  }
  return constants;
}

}  // namespace cubind
