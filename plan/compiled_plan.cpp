#include "plan/compiled_plan.hpp"

#include <algorithm>

namespace cubind {
namespace {

template <typename Plan>
void put_symbols(Plan& plan, const std::vector<std::string>& expressions,
                 const std::vector<std::string>& symbols) {
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
}

void add_shared(Launch& launch, std::uint32_t bytes) { launch.shared_bytes += bytes; }

void add_shared(LaunchTemplate& launch, std::uint32_t bytes) {
  launch.shared_bytes = "(" + launch.shared_bytes + ")+" + std::to_string(bytes);
}

template <typename Plan>
void put_launch_shared(Plan& plan, const std::vector<EntryResources>& resources) {
  for (auto& launch : plan.launches) {
    const auto entry = std::ranges::find(resources, launch.entry_symbol, &EntryResources::entry_symbol);
    if (entry != resources.end() && entry->launch_shared_bytes() != 0) {
      add_shared(launch, entry->launch_shared_bytes());
    }
  }
}

}  // namespace

PlanTemplate as_compiled(PlanTemplate plan, const std::vector<std::string>& expressions,
                         const std::vector<std::string>& symbols,
                         const std::vector<EntryResources>& resources) {
  put_symbols(plan, expressions, symbols);
  put_launch_shared(plan, resources);
  for (const EntryResources& entry : resources) {
    plan.static_shared_bytes = std::max<std::uint64_t>(plan.static_shared_bytes, entry.static_shared_bytes());
  }
  return plan;
}

LaunchPlan as_compiled(LaunchPlan plan, const std::vector<std::string>& expressions,
                       const std::vector<std::string>& symbols,
                       const std::vector<EntryResources>& resources) {
  put_symbols(plan, expressions, symbols);
  put_launch_shared(plan, resources);
  return plan;
}

}  // namespace cubind
