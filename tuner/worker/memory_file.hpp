#pragma once

#include <cstdint>
#include <string>

namespace cubind::worker {

/// A file in memory that NVRTC writes and reads by name, in a process that can open no file. It is on no
/// file system, has no path, and is freed when this process ends, however it ends.
///
/// NVRTC's front end opens a precompiled header with fopen() and __xstat(). The program exports its own, and
/// libraries opened later find these before the system's. They serve the current MemoryFile by its name,
/// which is random, so that no source can include it, and temporary files (mode "w+b"). Other calls are
/// forwarded.
class MemoryFile {
 public:
  /// At most one exists at a time. For one thread.
  MemoryFile();
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  const std::string& name() const noexcept { return name_; }
  /// Frees its memory.
  void clear();

 private:
  const std::string name_;
};

}  // namespace cubind::worker
