// The dynamic shared memory that a kernel may be launched with.
#pragma once

#include <cstdint>
#include <string_view>

#include "cuda_api/driver_api.hpp"

namespace cubind::cuda {

/// Lets `function` be launched with `dynamic_bytes`. Without this call, a block gets 48 KB of static and
/// dynamic shared memory together. The limit is only ever raised: launches of several sizes share a function.
/// Do not call it for one function from two threads at once. Throws DriverError naming `symbol` if the
/// device does not have as much.
void allow_shared_memory(const DriverApi& api, Function function, std::uint64_t dynamic_bytes,
                         std::string_view symbol);

}  // namespace cubind::cuda
