// A spec's launches with types, tunables and compiled-in dims filled in.
#include <algorithm>
#include <string>

#include "base/error.hpp"
#include "base/text.hpp"
#include "tuner/spec/kernel_spec.hpp"
#include "tuner/spec/placeholders.hpp"
#include "tuner/spec/substitution.hpp"

namespace cubind {
namespace {

ParameterTemplate parameter(const KernelSpec& spec, const ArgumentSpec& argument, const Problem& problem,
                            const Configuration& configuration) {
  if (argument.tensor_map) {
    const auto& [buffer, map] = *argument.tensor_map;
    ParameterTemplate result = parameter(spec, *spec.argument(buffer), problem, configuration);
    result.source = ParameterSource::TensorMap;
    result.tensor_map = map;
    result.tensor_map.type = spec.element_type(map, problem);
    return result;
  }
  ParameterTemplate result;
  result.name = argument.name;
  result.type = spec.element_type(argument, problem);
  const auto& clearing = argument.cleared_by;
  const bool is_cleared =
      clearing.empty() || std::ranges::find(clearing, configuration.values.front().value) != clearing.end();
  result.role = is_cleared ? argument.role : Role::Out;
  if (argument.buffer) {
    result.source = argument.symbol.empty() ? ParameterSource::Buffer : ParameterSource::Symbol;
    result.variable = substitute(argument.symbol, problem, configuration);
    result.extent = argument.extent;
    result.shape = argument.shape;
    result.align_bytes = argument.align_bytes;
  } else if (argument.from_caller) {
    result.source = ParameterSource::Caller;
  } else {
    result.source = ParameterSource::Value;
    result.value = argument.expr;
  }
  return result;
}

LaunchTemplate launch(const KernelSpec& spec, const LaunchSpec& from, const Problem& problem,
                      const Configuration& configuration) {
  LaunchTemplate to;
  to.entry = substitute(from.entry, problem, configuration);
  to.grid = from.grid;
  to.block = from.block;
  to.shared_bytes = from.shared_bytes;
  to.cluster = from.cluster;
  to.attributes = from.attributes;
  for (const std::string& name : from.arguments) {
    to.parameters.push_back(parameter(spec, *spec.argument(name), problem, configuration));
  }
  return to;
}

}  // namespace

std::string substitute(std::string_view text, const Problem& problem, const Configuration& configuration) {
  return replace_placeholders(text, [&](std::string_view name) -> std::string {
    if (const auto type = problem.type(name)) {
      return std::string(cuda_name(*type));
    }
    if (const auto value = configuration.value(name)) {
      return std::to_string(*value);
    }
    if (const auto dim = problem.dim(name)) {
      return std::to_string(*dim);
    }
    if (const auto flag = problem.flag(name)) {
      return std::to_string(*flag);
    }
    throw Error(ErrorCode::Internal, "placeholder", quoted(name) + " has no value");
  });
}

std::vector<std::string> name_expressions(const KernelSpec& spec, const std::vector<LaunchSpec>& launches,
                                          const Problem& problem, const Configuration& configuration) {
  std::vector<std::string> entries, variables;
  for (const LaunchSpec& launch : launches) {
    entries.push_back(substitute(launch.entry, problem, configuration));
    for (const std::string& name : launch.arguments) {
      if (const std::string& symbol = spec.argument(name)->symbol; !symbol.empty()) {
        variables.push_back(variable_expression(substitute(symbol, problem, configuration)));
      }
    }
  }
  std::ranges::sort(variables);
  const auto doubled = std::ranges::unique(variables);
  variables.erase(doubled.begin(), doubled.end());
  entries.insert(entries.end(), variables.begin(), variables.end());
  return entries;
}

PlanTemplate KernelSpec::plan_template(const Problem& problem, const Configuration& configuration) const {
  PlanTemplate plan;
  plan.constraints = constraints;
  for (const LaunchSpec& from : launches) {
    plan.launches.push_back(launch(*this, from, problem, configuration));
  }
  return plan;
}

PlanTemplate KernelSpec::reference_template(const Problem& problem) const {
  PlanTemplate plan;
  plan.where = "/reference";
  for (const LaunchSpec& from : reference.launches) {
    plan.launches.push_back(launch(*this, from, problem, {}));
  }
  return plan;
}

}  // namespace cubind
