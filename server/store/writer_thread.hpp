// The one thread that writes to the store.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/error.hpp"
#include "server/store/engine.hpp"

namespace cubind::store {

/// Runs one transaction after the other. Thread-safe. Tells whether the database takes writes: after a
/// failure of it they are still tried until one succeeds.
class WriterThread {
 public:
  explicit WriterThread(Engine& engine);
  /// Runs what was taken before.
  ~WriterThread();
  WriterThread(const WriterThread&) = delete;
  WriterThread& operator=(const WriterThread&) = delete;

  void write(const std::function<void(StoreWriter&)>& body);
  void write_behind(std::function<void(StoreWriter&)> body);
  /// How many transactions have been committed.
  std::uint64_t commits() const { return commits_; }
  std::optional<std::string> read_only_reason() const;
  bool try_recover();
  /// A try without waiting.
  void probe_behind();

 private:
  enum class Kind { Transaction, Probe };
  struct Task {
    Kind kind = Kind::Transaction;
    std::function<void(StoreWriter&)> body;
    bool awaited = true;
    std::promise<void> done;
  };

  std::future<void> enqueue(Task task);
  void run();
  void run(Task& task);
  void note_success();
  void note_failure(const Error& error);

  Engine& engine_;
  std::atomic<std::uint64_t> commits_{0};
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;                       // guarded by mutex_
  std::optional<std::string> read_only_reason_;  // guarded by mutex_
  bool stopping_ = false;                        // guarded by mutex_
  std::thread thread_;
};

}  // namespace cubind::store
