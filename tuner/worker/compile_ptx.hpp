#pragma once

#include <set>
#include <string>
#include <string_view>

namespace cubind::worker {

/// The kernels of a PTX module.
struct PtxKernels {
  std::set<std::string> entries;            // symbols of all kernels
  std::set<std::string> with_tensor_cores;  // entries that can reach a matrix instruction, also through calls
};

/// Reads NVRTC's PTX. Matrix instructions are mma.sync, wmma.mma, mma.sp, wgmma.mma_async and tcgen05.mma in
/// all their forms.
PtxKernels read_ptx(std::string_view ptx);

}  // namespace cubind::worker
