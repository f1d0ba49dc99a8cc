#include "tuner/spec/invalid_where.hpp"

#include <algorithm>
#include <set>
#include <vector>

#include "base/error.hpp"
#include "plan/expr/expression.hpp"

namespace cubind {
namespace {

/// The dims that differ from problem to problem of the bucket.
std::set<std::string> varying_dims(const KernelSpec& spec, const Problem& problem) {
  const auto bucket = spec.bucket(problem);
  std::set<std::string> names;
  for (std::size_t i = 0; i < bucket.size(); ++i) {
    if (bucket[i].lower != bucket[i].upper) {
      names.insert(problem.dims[i].name);
    }
  }
  return names;
}

}  // namespace

std::optional<std::string> invalid_where(const KernelSpec& spec, const Problem& problem,
                                         const Configuration& configuration, const DeviceConstants& device) {
  const auto holds = [&](const std::string& condition) {
    PlanTemplate plan;
    plan.constraints = {condition};
    const PlanEvaluator evaluator(std::move(plan), problem, configuration, device);
    return evaluator.evaluate(problem, configuration).plan.has_value();
  };
  const std::set<std::string> varying = varying_dims(spec, problem);
  Scope tunables;
  for (const NamedValue& value : configuration.values) {
    tunables.set(value.name, value.value);
  }
  const auto is_tunable = [&](const std::string& name) { return tunables.find(name).has_value(); };
  const auto varies = [&](const std::string& name) { return varying.contains(name); };
  std::string valid;
  for (const std::string& constraint : spec.constraints) {
    const Expression expression = Expression::parse(constraint);
    const auto& names = expression.variables();
    // What reads no tunable is demanded of every configuration.
    if (std::ranges::any_of(names, is_tunable) && std::ranges::any_of(names, varies)) {
      valid += (valid.empty() ? "(" : " && (") + expression.text_with(tunables) + ")";
    }
  }
  if (valid.empty()) {
    return std::nullopt;
  }
  std::string condition = "!(" + valid + ")";
  try {
    return holds(condition) ? std::optional(condition) : std::nullopt;
  } catch (const Error&) {
    return std::nullopt;  // beyond ExpressionLimits: together the constraints are one longer expression
  }
}

}  // namespace cubind
