// libcuda, opened at run time.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "cuda_api/driver_functions.hpp"
#include "cuda_api/driver_types.hpp"

namespace cubind::cuda {

/// A table of the driver's functions, named as in cuda.h without the prefix and in snake_case. Immutable;
/// safe on many threads (the functions are as safe as the driver makes them). Loading it does not call
/// cuInit.
struct DriverApi {
#define CUBIND_DECLARE(member, exported, parameters) Result(*member) parameters = nullptr;
  CUBIND_DRIVER_FUNCTIONS(CUBIND_DECLARE)
#undef CUBIND_DECLARE

  std::string library;  // the file that was opened
};

/// Where libcuda is looked for.
std::vector<std::string> driver_candidates();

/// Null if no candidate loads; `why` then says so: "no NVIDIA driver is here: libcuda.so.1 was not found".
/// Throws Error(FailedPrecondition) for a library that lacks a function: the driver is older than branch 525.
std::shared_ptr<const DriverApi> find_driver(
    std::string& why, const std::vector<std::string>& candidates = driver_candidates());

/// Like find_driver(), but throws Error(FailedPrecondition) if there is no driver.
std::shared_ptr<const DriverApi> load_driver(
    const std::vector<std::string>& candidates = driver_candidates());

/// "CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal memory access was encountered".
std::string describe(const DriverApi& api, Result result);

/// Whether the error leaves the context unusable: every later call in it fails, and the process has to end.
bool is_sticky(Result result);

/// A driver call that failed. The code is ResourceExhausted for OutOfMemory, else FailedPrecondition.
class DriverError : public Error {
 public:
  DriverError(const DriverApi& api, Result result, std::string_view operation);
  Result result() const noexcept { return result_; }

 private:
  Result result_;
};

/// Throws DriverError unless `result` is Success. `operation` names the call: "cuMemAlloc of 4096 bytes".
inline void check(const DriverApi& api, Result result, std::string_view operation) {
  if (result != Result::Success) {
    throw DriverError(api, result, operation);
  }
}

}  // namespace cubind::cuda
