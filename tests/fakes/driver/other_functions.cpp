// Every function that cubind looks up in libcuda does nothing and succeeds, but for those in fake_driver.cpp.
#include <cstddef>

#include "cuda_api/driver_functions.hpp"
#include "cuda_api/driver_types.hpp"

namespace cubind::cuda {

// NOLINTBEGIN(readability-identifier-naming): the driver's names
#define CUBIND_SUCCEED(member, exported, parameters) \
  extern "C" __attribute__((weak)) Result exported parameters { return Result::Success; }
CUBIND_DRIVER_FUNCTIONS(CUBIND_SUCCEED)
#undef CUBIND_SUCCEED
// Triton's own module links these too.
extern "C" Result cuCtxGetLimit(std::size_t*, int) { return Result::Success; }
extern "C" Result cuCtxSetLimit(int, std::size_t) { return Result::Success; }
// NOLINTEND(readability-identifier-naming)

}  // namespace cubind::cuda
