// Connections for reading.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "server/store/damaged_rows.hpp"
#include "server/store/engine.hpp"
#include "server/store/store_reader.hpp"

namespace cubind::store {

/// Thread-safe: a connection is used by one thread at a time. Connections are opened as they are needed, up
/// to `size`; then a reader waits. A lost one is replaced.
class ReaderPool {
 public:
  ReaderPool(Engine& engine, unsigned size, DamagedRows& damaged)
      : engine_(engine), size_(size), damaged_(damaged) {}

  /// Runs `body` on the calling thread in one transaction.
  void read(const std::function<void(StoreReader&)>& body);

 private:
  std::unique_ptr<Connection> take();
  std::unique_ptr<Connection> open();
  void give(std::unique_ptr<Connection> database);

  Engine& engine_;
  const unsigned size_;
  DamagedRows& damaged_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<Connection>> idle_;  // guarded by mutex_
  unsigned open_ = 0;                              // guarded by mutex_
};

}  // namespace cubind::store
