#include "tuner/worker/module_state.hpp"

namespace cubind::worker {

ModuleState::ModuleState(const DriverContext& context, MemoryBudget& budget, const LoadedModule& module,
                         const std::vector<std::string>& symbols)
    : context_(context) {
  for (const std::string& symbol : symbols) {
    ModuleVariable at;
    try {
      at = module.variable(symbol);
    } catch (const cuda::DriverError& error) {
      if (error.result() == cuda::Result::NotFound && symbol.starts_with('$')) {
        continue;
      }
      throw;
    }
    variables_.push_back({at, DeviceMemory(budget, at.bytes)});
    context.copy(variables_.back().first.address(), at.address, at.bytes);
  }
}

void ModuleState::restore() const {
  for (const Variable& variable : variables_) {
    context_.copy(variable.at.address, variable.first.address(), variable.at.bytes);
  }
}

}  // namespace cubind::worker
