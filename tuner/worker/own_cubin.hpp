// The worker's own kernels as machine code.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace cubind::worker {

/// A cubin for GPUs of this compute capability; absent where there is none, and PTX must do. The driver
/// compiles the PTX in 0.2 s, and does so again wherever its cache is empty.
std::optional<std::string> own_cubin(std::uint32_t cc_major, std::uint32_t cc_minor);

}  // namespace cubind::worker
