// NVIDIA Nsight Compute, the profiler of kernels.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace cubind::ctl {

/// The launcher of a variant, and how ncu counts it.
struct NcuRun {
  std::filesystem::path launch_file;  // what `cubind-worker launch` reads
  std::filesystem::path log;          // what ncu writes: its messages and the table
  bool warm_l2 = false;               // else ncu flushes the caches before each pass
};

/// In PATH, then in CUDA_HOME, then in /usr/local/cuda. Absent: there is none.
std::optional<std::filesystem::path> find_ncu();

/// The arguments with which ncu launches the variant and prints what read_ncu_csv() reads.
std::vector<std::string> ncu_arguments(const NcuRun& run);

/// The same as a line for a shell.
std::string ncu_command(const NcuRun& run);

/// Runs ncu to its end. The launcher's errors go to standard error. How it ended is not looked at: what is
/// missing in the log says more.
void run_ncu(const std::filesystem::path& ncu, const NcuRun& run);

}  // namespace cubind::ctl
