// The host memory that CUPTI writes its records into.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace cubind::worker {

/// Buffers that are given again and again, and are all zeros whenever they are given, so that CUPTI need not
/// clear them: it does so within the first launch after a flush. A fresh megabyte for each flush cost that
/// launch 20 us on an H200. Thread-safe, as CUPTI asks and delivers from threads of its own.
class ActivityBuffers {
 public:
  /// Some hundred records; a block that has more takes several.
  static constexpr std::size_t kBytes = std::size_t{64} << 10;

  /// kBytes of zeros, aligned as CUPTI wants it. Null: out of memory.
  std::uint8_t* give();
  /// One that give() gave and whose records have been read.
  void take_back(std::uint8_t* buffer);

 private:
  struct Free {
    void operator()(std::uint8_t* buffer) const;
  };
  std::mutex mutex_;
  std::vector<std::unique_ptr<std::uint8_t[], Free>> unused_;  // guarded by mutex_; cleared
};

}  // namespace cubind::worker
