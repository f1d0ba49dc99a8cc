// A cubin that the driver has loaded into the current context.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cuda_api/driver_api.hpp"
#include "cuda_api/driver_types.hpp"

namespace cubind {

/// A __constant__ or __device__ variable.
struct ModuleVariable {
  cuda::DevicePtr address = 0;
  std::uint64_t bytes = 0;
};

/// Throws Error(InvalidArgument) at the argument's name if it has more bytes than the variable.
void check_content(const std::string& argument, std::uint64_t bytes, const ModuleVariable& variable,
                   const std::string& symbol);

/// Owns a loaded module. The owner makes the context of loading current before it destroys this object.
/// Immutable, safe on many threads. The function table must outlive it.
class LoadedModule {
 public:
  /// `symbols`: the functions to find; their order numbers them. `owner` is for messages. Throws
  /// cuda::DriverError if the driver does not load the cubin or it lacks a symbol.
  LoadedModule(const cuda::DriverApi& api, const std::string& cubin, std::vector<std::string> symbols,
               const std::string& owner);
  ~LoadedModule();
  LoadedModule(const LoadedModule&) = delete;
  LoadedModule& operator=(const LoadedModule&) = delete;

  const cuda::DriverApi& api() const { return api_; }
  cuda::Module handle() const { return module_; }
  const std::vector<std::string>& symbols() const { return symbols_; }
  cuda::Function function(std::size_t index) const { return functions_[index]; }
  /// Throws Error(InvalidArgument) for a symbol that was not in `symbols`.
  std::size_t number_of(const std::string& symbol) const;
  /// Throws cuda::DriverError if the module has no such variable.
  ModuleVariable variable(const std::string& symbol) const;
  /// Throws cuda::DriverError.
  int attribute(std::size_t index, cuda::FunctionAttribute which) const;

 private:
  void find_functions();

  const cuda::DriverApi& api_;
  cuda::Module module_ = nullptr;
  std::vector<std::string> symbols_;
  std::vector<cuda::Function> functions_;
};

}  // namespace cubind
