#include "server/store/reader_pool.hpp"

#include <utility>

namespace cubind::store {

void ReaderPool::read(const std::function<void(StoreReader&)>& body) {
  std::unique_ptr<Connection> database = take();
  try {
    database->transaction(Access::Read, [&] {
      StoreReader reader(*database, damaged_);
      body(reader);
    });
  } catch (...) {
    give(std::move(database));
    throw;
  }
  give(std::move(database));
}

std::unique_ptr<Connection> ReaderPool::take() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !idle_.empty() || open_ < size_; });
  while (!idle_.empty() && !idle_.back()->is_usable()) {
    idle_.pop_back();
    --open_;
  }
  if (idle_.empty()) {
    ++open_;
    lock.unlock();
    return open();
  }
  auto database = std::move(idle_.back());
  idle_.pop_back();
  return database;
}

std::unique_ptr<Connection> ReaderPool::open() {
  try {
    return engine_.connect_reader();
  } catch (...) {
    const std::lock_guard lock(mutex_);
    --open_;
    changed_.notify_one();
    throw;
  }
}

void ReaderPool::give(std::unique_ptr<Connection> database) {
  const std::lock_guard lock(mutex_);
  if (database->is_usable()) {
    idle_.push_back(std::move(database));
  } else {
    --open_;
  }
  changed_.notify_one();
}

}  // namespace cubind::store
