#include "cuda_api/shared_memory.hpp"

#include <string>

namespace cubind::cuda {

void allow_shared_memory(const DriverApi& api, Function function, std::uint64_t dynamic_bytes,
                         std::string_view symbol) {
  // The driver's limit does not count the kernel's static shared memory.
  int allowed = 0;
  check(api, api.func_get_attribute(&allowed, FunctionAttribute::MaxDynamicSharedBytes, function),
        "the limit of shared memory of " + std::string(symbol));
  if (dynamic_bytes <= static_cast<std::uint64_t>(allowed)) {
    return;
  }
  check(api,
        api.func_set_attribute(function, FunctionAttribute::MaxDynamicSharedBytes,
                               static_cast<int>(dynamic_bytes)),
        std::string(symbol) + " with " + std::to_string(dynamic_bytes) + " bytes of dynamic shared memory");
}

}  // namespace cubind::cuda
