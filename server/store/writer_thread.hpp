// The one thread that writes to the store, with the one connection for that.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "server/store/damaged_rows.hpp"
#include "server/store/database.hpp"
#include "server/store/generation_mark.hpp"
#include "server/store/store.hpp"

namespace cubind::store {

/// Brings the file to today's schema, then runs one transaction after the other. Thread-safe. Tells whether
/// the disk takes writes: after a failure of the disk they are still tried, with less patience, until one
/// succeeds.
class WriterThread {
 public:
  /// Throws what Store::open() does about the file, and DataLoss where it is damaged and of no use any more.
  WriterThread(const StoreOptions& options, DamagedRows& damaged);
  /// Runs what was taken before.
  ~WriterThread();
  WriterThread(const WriterThread&) = delete;
  WriterThread& operator=(const WriterThread&) = delete;

  void write(const std::function<void(StoreWriter&)>& body);
  void write_behind(std::function<void(StoreWriter&)> body);
  std::optional<std::string> read_only_reason() const;
  bool try_recover();

 private:
  enum class Kind { Transaction, Probe };
  struct Task {
    Kind kind = Kind::Transaction;
    std::function<void(StoreWriter&)> body;
    bool awaited = true;
    std::promise<void> done;
  };

  void set_up(const StoreOptions& options);
  /// Throws DataLoss where the file does not give what a daemon starts with.
  void make_usable(const std::filesystem::path& path);
  std::optional<std::string> first_damage();
  void require_usable();
  void insert_meta(const std::filesystem::path& path);
  void redraw_if_restored(const std::filesystem::path& path);
  Generation generation() { return StoreReader(database_, damaged_).generation(); }
  std::string stored_identity();
  std::future<void> enqueue(Task task);
  void run();
  void run(Task& task);
  void run_transaction(const std::function<void(StoreWriter&)>& body);
  void note_success();
  void note_failure(const Error& error);

  const std::chrono::milliseconds patience_;
  GenerationMark mark_;  // this and database_ are used by thread_ alone once that runs
  Database database_;
  DamagedRows& damaged_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;                       // guarded by mutex_
  std::optional<std::string> read_only_reason_;  // guarded by mutex_
  bool stopping_ = false;                        // guarded by mutex_
  std::thread thread_;
};

}  // namespace cubind::store
