// Every function that cubind looks up in libcuda does nothing and succeeds, but for those in fake_driver.cpp.
#include "cuda_api/driver_functions.hpp"
#include "cuda_api/driver_types.hpp"

namespace cubind::cuda {

// NOLINTBEGIN(readability-identifier-naming): the driver's names
#define CUBIND_SUCCEED(member, exported, parameters) \
  extern "C" __attribute__((weak)) Result exported parameters { return Result::Success; }
CUBIND_DRIVER_FUNCTIONS(CUBIND_SUCCEED)
#undef CUBIND_SUCCEED
// NOLINTEND(readability-identifier-naming)

}  // namespace cubind::cuda
