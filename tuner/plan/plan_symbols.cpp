// Name expressions of a plan and their lowered names.
#include <algorithm>

#include "tuner/plan/launch_plan.hpp"

namespace cubind {
namespace {

template <typename Plan>
Plan named(Plan plan, const std::vector<std::string>& expressions, const std::vector<std::string>& symbols) {
  const auto symbol_of = [&](const std::string& expression) {
    const auto found = std::ranges::find(expressions, expression);
    const auto index = static_cast<std::size_t>(found - expressions.begin());
    return index < symbols.size() ? symbols[index] : std::string();
  };
  for (auto& launch : plan.launches) {
    launch.entry_symbol = symbol_of(launch.entry);
    for (auto& parameter : launch.parameters) {
      if (parameter.source == ParameterSource::Symbol) {
        parameter.symbol = symbol_of(variable_expression(parameter.variable));
      }
    }
  }
  return plan;
}

}  // namespace

std::string variable_expression(const std::string& variable) { return "&" + variable; }

bool is_variable(std::string_view expression) { return expression.starts_with('&'); }

PlanTemplate with_symbols(PlanTemplate plan, const std::vector<std::string>& expressions,
                          const std::vector<std::string>& symbols) {
  return named(std::move(plan), expressions, symbols);
}

LaunchPlan with_symbols(LaunchPlan plan, const std::vector<std::string>& expressions,
                        const std::vector<std::string>& symbols) {
  return named(std::move(plan), expressions, symbols);
}

}  // namespace cubind
