// From a launch plan to launches: functions found, parameters packed.
#pragma once

#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "cuda_api/driver_types.hpp"
#include "launch/loaded_module.hpp"
#include "launch/pack.hpp"
#include "plan/launch_plan.hpp"
#include "plan/plan_program.hpp"
#include "schemas/worker.pb.h"

namespace cubind::worker {

/// The loaded entries in the order of the module's symbols.
std::vector<v1::LoadedEntry> loaded_entries(const LoadedModule& module);

/// Finds a buffer for a plan's parameter: its address, having made sure that it has `extent_bytes`. Throws
/// Error(InvalidArgument) where the setup has none of that name.
using FindBuffer = std::function<cuda::DevicePtr(const Parameter& parameter)>;
/// The value that the measurement passes for a caller's scalar.
using FindScalar = std::function<double(const Parameter& parameter)>;

/// Ready to be launched again and again. The module must outlive it, and the buffers must stay where they
/// are. Inputs that are variables of the module are copied there when it is bound, on `stream`: not with each
/// launch.
class BoundPlan {
 public:
  /// Grants the dynamic shared memory that the launches want. Throws DriverError, or
  /// Error(FailedPrecondition) where a block has more threads than the compiled kernel allows.
  BoundPlan(const LoadedModule& module, const LaunchPlan& plan, const FindBuffer& buffer,
            const FindScalar& scalar, cuda::Stream stream);

  unsigned launches() const { return static_cast<unsigned>(launches_.size()); }
  /// The buffers that hold zeros before a run, by name.
  const std::set<std::string>& cleared() const { return cleared_; }
  /// Enqueues all launches in order. Throws DriverError.
  void enqueue(cuda::Stream stream) const;

 private:
  struct BoundLaunch {
    std::size_t function = 0;  // its number in the module
    LaunchShape shape;
    std::vector<std::variant<ParameterBytes, cuda::TensorMap>> values;  // one for each parameter
  };
  void copy(const Parameter& symbol, cuda::DevicePtr content, cuda::Stream stream) const;
  void check_block(const BoundLaunch& launch) const;

  const LoadedModule& module_;
  std::vector<BoundLaunch> launches_;
  std::set<std::string> cleared_;
};

}  // namespace cubind::worker
