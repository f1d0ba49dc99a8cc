// From a launch plan to launches: functions found, parameters packed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "schemas/worker.pb.h"
#include "tuner/worker/driver_context.hpp"

namespace cubind::worker {

/// A loaded cubin. One thread.
class LoadedCubin {
 public:
  /// Throws DriverError if the driver does not take it or it lacks a symbol.
  LoadedCubin(const DriverContext& context, const std::string& cubin,
              const std::vector<std::string>& symbols);
  ~LoadedCubin();
  LoadedCubin(const LoadedCubin&) = delete;
  LoadedCubin& operator=(const LoadedCubin&) = delete;

  /// Throws Error(InvalidArgument) for a symbol that was not named at loading.
  cuda::Function function(const std::string& symbol) const;
  /// The loaded entries in the order of `symbols`.
  std::vector<v1::LoadedEntry> entries() const;

 private:
  const cuda::DriverApi& api_;
  cuda::Module module_ = nullptr;
  std::vector<std::string> symbols_;
  std::map<std::string, cuda::Function> functions_;
};

/// Finds a buffer for a plan's parameter: its address, having made sure that it has `extent_bytes`. Throws
/// Error(InvalidArgument) where the setup has none of that name.
using FindBuffer = std::function<cuda::DevicePtr(const v1::Parameter& parameter)>;
/// The value that the measurement passes for a caller's scalar.
using FindScalar = std::function<double(const v1::Parameter& parameter)>;

/// Ready to be launched again and again. The cubin must outlive it, and the buffers must stay where they are.
class BoundPlan {
 public:
  /// Grants the dynamic shared memory that the launches want. Throws DriverError, or
  /// Error(FailedPrecondition) where a block has more threads than the compiled kernel allows.
  BoundPlan(const DriverContext& context, const LoadedCubin& cubin, const v1::LaunchPlan& plan,
            const FindBuffer& buffer, const FindScalar& scalar);

  unsigned launches() const { return static_cast<unsigned>(launches_.size()); }
  /// Enqueues all launches in order. Throws DriverError.
  void enqueue(cuda::Stream stream) const;

 private:
  struct BoundLaunch {
    std::string symbol;
    cuda::Function function = nullptr;
    std::array<unsigned, 3> grid{1, 1, 1};
    std::array<unsigned, 3> block{1, 1, 1};
    unsigned shared_bytes = 0;
    std::vector<std::array<std::byte, 8>> values;  // one a parameter
  };
  void check_block(const BoundLaunch& launch) const;

  const cuda::DriverApi& api_;
  std::vector<BoundLaunch> launches_;
};

/// The bytes that a kernel's scalar parameter of this type holds. Throws Error(InvalidArgument) if the
/// value does not fit an integer type.
std::array<std::byte, 8> pack_scalar(const v1::Parameter& parameter, double value);
std::array<std::byte, 8> pack_scalar(const v1::Parameter& parameter, std::int64_t value);

}  // namespace cubind::worker
