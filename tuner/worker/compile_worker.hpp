#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace cubind::worker {

/// The arguments behind `cubind-worker compile --fd N`:
///   --nvrtc PATH         the library, by its full path
///   --builtins PATH      libnvrtc-builtins of the same folder
///   --cpu-seconds N      CPU time that one compile may take (default 600, 0: no limit)
struct CompileWorkerOptions {
  std::filesystem::path nvrtc;
  std::filesystem::path builtins;
  std::uint64_t cpu_seconds = 600;
};

/// Throws Error(InvalidArgument) naming the argument.
CompileWorkerOptions parse_compile_worker_options(const std::vector<std::string>& arguments);

// The largest frame that a compile worker takes and sends.
inline constexpr std::size_t kMaxCompileFrame = std::size_t{512} << 20;

}  // namespace cubind::worker
