#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tuner/worker/parameter_uses.hpp"

namespace cubind::worker {

/// A variable of a PTX module, in global or constant memory.
struct PtxVariable {
  bool is_constant = false;  // __constant__
  bool is_zeroed = false;    // without an initializer; NVRTC leaves out those that are all zeros
  bool is_empty = false;     // one byte of no type: an object without members, an empty string
  std::uint64_t bytes = 0;
  std::uint32_t align = 0;
  bool operator==(const PtxVariable&) const = default;
};

/// What a kernel can reach, also through calls, addresses of functions and addresses in variables.
struct PtxKernel {
  bool has_tensor_cores = false;
  std::string texture_instruction;     // the first of a texture or surface; empty: none
  std::vector<std::string> variables;  // symbols of those that it reads or takes the address of, sorted
  ParameterUses uses = {};
};

struct PtxModule {
  std::map<std::string, PtxKernel, std::less<>> kernels;      // by symbol
  std::map<std::string, PtxVariable, std::less<>> variables;  // by symbol
};

/// Reads NVRTC's PTX. Matrix instructions are mma.sync, wmma.mma, mma.sp, wgmma.mma_async and tcgen05.mma in
/// all their forms. A plain store to a variable is no use of it.
PtxModule read_ptx(std::string_view ptx);

}  // namespace cubind::worker
