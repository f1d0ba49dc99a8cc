// What the variables of a module hold before its first launch.
#pragma once

#include <string>
#include <vector>

#include "launch/loaded_module.hpp"
#include "tuner/worker/device_memory.hpp"
#include "tuner/worker/driver_context.hpp"

namespace cubind::worker {

/// Takes a launch what earlier ones have left in variables of the module. One thread; context and module must
/// outlive it.
class ModuleState {
 public:
  /// Copies these variables of a module that has just been loaded. Throws DriverError, also if the driver
  /// does not find one, unless its name begins like those of the compiler's own, with a dollar sign.
  ModuleState(const DriverContext& context, MemoryBudget& budget, const LoadedModule& module,
              const std::vector<std::string>& symbols);

  /// Enqueues copies, no kernels.
  void restore() const;

 private:
  struct Variable {
    ModuleVariable at;
    DeviceMemory first;
  };
  const DriverContext& context_;
  std::vector<Variable> variables_;
};

}  // namespace cubind::worker
