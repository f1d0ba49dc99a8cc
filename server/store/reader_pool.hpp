// Connections for reading.
#pragma once

#include <condition_variable>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "server/store/damaged_rows.hpp"
#include "server/store/database.hpp"
#include "server/store/store_reader.hpp"

namespace cubind::store {

/// Thread-safe: a connection is used by one thread at a time. Connections are opened as they are needed, up
/// to `size`; then a reader waits.
class ReaderPool {
 public:
  ReaderPool(std::filesystem::path path, unsigned size, DamagedRows& damaged)
      : path_(std::move(path)), size_(size), damaged_(damaged) {}

  /// Runs `body` on the calling thread in one transaction.
  void read(const std::function<void(StoreReader&)>& body);

 private:
  std::unique_ptr<Database> take();
  std::unique_ptr<Database> open();
  void give(std::unique_ptr<Database> database);

  const std::filesystem::path path_;
  const unsigned size_;
  DamagedRows& damaged_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<Database>> idle_;  // guarded by mutex_
  unsigned open_ = 0;                            // guarded by mutex_
};

}  // namespace cubind::store
