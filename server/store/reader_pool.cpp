#include "server/store/reader_pool.hpp"

#include <utility>

namespace cubind::store {

void ReaderPool::read(const std::function<void(StoreReader&)>& body) {
  std::unique_ptr<Database> database = take();
  try {
    database->transaction("BEGIN", [&] {
      StoreReader reader(*database, damaged_);
      body(reader);
    });
  } catch (...) {
    give(std::move(database));
    throw;
  }
  give(std::move(database));
}

std::unique_ptr<Database> ReaderPool::take() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !idle_.empty() || open_ < size_; });
  if (idle_.empty()) {
    ++open_;
    lock.unlock();
    return open();
  }
  auto database = std::move(idle_.back());
  idle_.pop_back();
  return database;
}

std::unique_ptr<Database> ReaderPool::open() {
  try {
    return std::make_unique<Database>(path_, Database::Mode::ReadOnly);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    --open_;
    throw;
  }
}

void ReaderPool::give(std::unique_ptr<Database> database) {
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(database));
  changed_.notify_one();
}

}  // namespace cubind::store
