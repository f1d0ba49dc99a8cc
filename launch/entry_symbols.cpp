#include "launch/entry_symbols.hpp"

#include <algorithm>

namespace cubind {
namespace {

template <typename Launches>
std::vector<std::string> each_once(const Launches& launches) {
  std::vector<std::string> symbols;
  for (const auto& launch : launches) {
    if (std::ranges::find(symbols, launch.entry_symbol) == symbols.end()) {
      symbols.push_back(launch.entry_symbol);
    }
  }
  return symbols;
}

}  // namespace

std::vector<std::string> entry_symbols(const PlanTemplate& plan) { return each_once(plan.launches); }
std::vector<std::string> entry_symbols(const LaunchPlan& plan) { return each_once(plan.launches); }

}  // namespace cubind
