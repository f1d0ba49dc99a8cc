// One tuner per GPU.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

#include "base/unique_fd.hpp"

namespace cubind::worker {

/// The folder with the locks of all users of this machine: /run/lock, or /tmp if that is not open to
/// all users. Containers that share a GPU must share it.
std::filesystem::path gpu_lock_folder();

/// An flock on a file named after the GPU's UUID. The kernel releases it when the process ends, however it
/// ends.
class GpuLock {
 public:
  /// Absent if another process of any user holds it. Every user may write to the folder, so links are not
  /// followed, nothing is written to the file, and it is read-only to all but its maker. Throws Error if the
  /// file cannot be made or opened, or is not a plain file.
  static std::optional<GpuLock> try_acquire(const std::filesystem::path& folder, const std::string& uuid);
  /// Like try_acquire(), but gives a holder that is just ending `patience`: a killed worker's context takes a
  /// while to be taken down, and its lock goes with the last of it.
  static std::optional<GpuLock> acquire(const std::filesystem::path& folder, const std::string& uuid,
                                        std::chrono::milliseconds patience);

 private:
  explicit GpuLock(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace cubind::worker
