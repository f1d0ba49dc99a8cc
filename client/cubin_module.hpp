// A cubin in a CUDA context.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cuda_api/driver_api.hpp"
#include "cuda_api/driver_types.hpp"
#include "launch/loaded_module.hpp"

namespace cubind {

/// Loads a cubin into the current context (the first visible device's primary context if none is current) and
/// keeps it there. Safe on many threads. The destructor unloads the module; no launch may be in flight then.
class CubinModule {
 public:
  /// `symbols`: the functions to find; their order numbers them. `kernel` is for messages. Throws
  /// Error(FailedPrecondition) with the driver's message if the driver does not load the cubin or shows no
  /// device.
  CubinModule(std::shared_ptr<const cuda::DriverApi> api, const std::string& cubin,
              const std::vector<std::string>& symbols, const std::string& kernel);
  ~CubinModule();
  CubinModule(const CubinModule&) = delete;
  CubinModule& operator=(const CubinModule&) = delete;

  /// Whether the module's functions are these, in this order.
  bool has_functions(const std::vector<std::string>& symbols) const { return module_->symbols() == symbols; }

  const cuda::DriverApi& api() const { return *api_; }
  cuda::Module handle() const { return module_->handle(); }
  cuda::Function function(std::size_t index) const { return module_->function(index); }

  /// Throws DriverError if the cubin has no such variable.
  ModuleVariable variable(const std::string& symbol) const;

  /// Makes the module's context current on this thread for its lifetime. A thread that had no context keeps
  /// it.
  class Current {
   public:
    /// Throws DriverError.
    explicit Current(const CubinModule& module);
    ~Current();
    Current(const Current&) = delete;
    Current& operator=(const Current&) = delete;

   private:
    const CubinModule& module_;
    cuda::Context before_ = nullptr;  // made current again at the end; null: none
  };

  /// Raises the function's limit of dynamic shared memory to `bytes` if it is lower; only then a lock is
  /// taken. Throws DriverError if the device does not have that much.
  void grant_shared_memory(std::size_t index, std::uint64_t bytes);

 private:
  void choose_context();

  std::shared_ptr<const cuda::DriverApi> api_;
  cuda::Context context_ = nullptr;
  std::unique_ptr<LoadedModule> module_;
  std::vector<std::atomic<std::uint64_t>> granted_;  // the limit of each function so far
  std::mutex mutex_;                                 // held while a function's limit is raised
};

}  // namespace cubind
