// Reads from a cubin what its entries take and how they may be launched. NVIDIA documents the container (ELF)
// alone. The rest was found by compiling kernels with NVRTC 12.9 and 13.0 and nvcc 13.0 for sm_70 to sm_121
// (tests/nvrtc/toolbox/entry_faults_test.cpp compiles them again, tests/golden/cubins holds two):
//
//   cubin      = ELF64, little-endian, machine 190; an entry has the section ".nv.info." SYMBOL
//   section    = attribute*
//   attribute  = format:u8 number:u8 value
//   value      = any:u16                  ; formats 1 (no value), 2 (one byte) and 3 (one u16)
//              | size:u16 any:u8[size]    ; format 4
//
//   number 0x17, format 4  a parameter: 0:u32 position:u16 offset:u16 word:u32; bits 18 to 31 are the size
//   number 0x45, format 4  the same if the parameters exceed 4 KiB: bits 0 to 15 are the size
//   number 0x19, format 3  the size of all parameters with the gaps between them; absent: there are none
//   number 0x05, format 4  x:u32 y:u32 z:u32; the product limits a block's threads (__launch_bounds__)
//   number 0x10, format 4  x:u32 y:u32 z:u32; the block (__block_size__, .reqntid)
//   number 0x3d, format 4  x:u32 y:u32 z:u32; blocks of a cluster (__cluster_dims__, .reqnctapercluster)
//   number 0x3e, format 1  the entry is launched in clusters (.explicitcluster)
//   number 0x5b, format 1  a launch's grid counts clusters (.blocksareclusters; __block_size__ of NVRTC 13)
//
// A __constant__ or __device__ variable is a symbol of type STT_OBJECT in ".symtab"; its size is that of the
// type. One in ".nv.global" (zeros) or ".nv.global.init" is a __device__ variable, or a text of the
// compiler's. A function of the driver, such as vprintf, is a symbol of section 0.
//
// From sm_100 on, other bits of a parameter's word mark pointers; they are not used.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plan/launch_plan.hpp"

namespace cubind {

struct CubinEntry {
  /// Bytes of each parameter. Absent: the cubin's list is not complete.
  std::optional<std::vector<std::uint32_t>> parameter_bytes = {};
  std::uint64_t max_threads = 0;       // of a block; 0: no limit of its own
  std::optional<Dim3> block = {};      // no other can be launched
  std::optional<Dim3> cluster = {};    // of each launch
  bool grid_counts_clusters = false;   // and not blocks
  bool wants_launch_clusters = false;  // their size comes with the launch
  bool operator==(const CubinEntry&) const = default;
};

/// By symbol. An entry that cannot be read is left out; there may be none in a truncated cubin, and in bytes
/// that are not a cubin's.
using CubinEntries = std::map<std::string, CubinEntry, std::less<>>;
CubinEntries read_cubin_entries(std::string_view cubin);

/// The bytes of each variable, by symbol. Empty for bytes that are not a cubin's.
using CubinVariables = std::map<std::string, std::uint64_t, std::less<>>;
CubinVariables read_cubin_variables(std::string_view cubin);

/// The symbols of the variables that a launch may change.
std::vector<std::string> changeable_variables(std::string_view cubin);

/// Whether it calls a function that the driver has. False for bytes that are not a cubin's.
bool calls_driver(std::string_view cubin, std::string_view function);

}  // namespace cubind
