#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace cubind::worker {

/// The resources of one kernel by `ptxas -v`.
struct KernelResources {
  std::uint32_t registers = 0;
  std::uint32_t static_shared_bytes = 0;
  std::uint32_t local_bytes = 0;  // the stack of the kernel and of everything that it calls
  std::uint32_t spill_store_bytes = 0;
  std::uint32_t spill_load_bytes = 0;

  bool operator==(const KernelResources&) const = default;
};

/// NVRTC's log, taken apart.
struct CompileLog {
  std::map<std::string, KernelResources> kernels;  // by symbol
  std::string messages;  // the log without the lines of ptxas -v, which change from run to run
};

/// Splits the log of a compile with --ptxas-options=-v. Spills of functions that were not inlined count for
/// no kernel: ptxas does not say who calls them.
CompileLog parse_compile_log(std::string_view log);

/// The first of the macros NAME=VALUE that the source defines otherwise, by NVRTC's warnings; empty if there
/// is none. The source wins then, and each value of a tunable would compile the same.
std::string redefined_macro(std::string_view messages, const std::vector<std::string>& defines);

}  // namespace cubind::worker
