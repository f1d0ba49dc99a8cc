// The database of a daemon, or of several: artifacts, trials with their samples, records, jobs.
//
// Thread rule: a Store is used from any thread. Writes run on its one writer thread, one transaction at a
// time; reads run on the calling thread with a connection of their own and see the last committed state. A
// reader or writer object is used only within the function that it was handed to.
//
// Errors: DataLoss where a row no longer has its digest or its full key, or a value that does not read back:
// it is never returned, and where several rows are asked for the others are (damaged_rows()).
// ResourceExhausted where the disk is full and Unavailable where it fails (the store is then read-only until
// a write succeeds again), FailedPrecondition from open() (another daemon has the store, a network file
// system, a newer schema). Where the server of PostgreSQL cannot be reached, reads throw Unavailable, too;
// the store connects again by itself.
//
// A store whose file is damaged so far that a daemon cannot start with it is renamed aside by open(), and a
// new one is begun. Only damage does that, never a full, failing or busy disk.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/unique_fd.hpp"
#include "server/store/damaged_rows.hpp"
#include "server/store/store_reader.hpp"
#include "server/store/store_writer.hpp"

namespace cubind {

namespace store {
class Engine;
class Peers;
class ReaderPool;
class WriterThread;
}  // namespace store

struct StoreOptions {
  std::filesystem::path path;   // of the database file; its folder is made
  std::uint32_t max_pages = 0;  // of 4 KiB; 0: no limit
  unsigned readers = 4;         // connections kept for reading
  // The first write's wait for another process's lock; later writes hardly wait until one succeeds.
  std::chrono::milliseconds patience{5000};
  std::string address = {};  // of the daemon, for another one that wants the store
  std::string url = {};      // of a database of PostgreSQL, in place of the file
};

class Store {
 public:
  static std::unique_ptr<Store> open(const StoreOptions& options);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  /// Where it lies: the path of a file, or the URL of a database.
  std::string location() const;

  /// Runs `body` with a reading connection; all of its reads see one committed state.
  void read(const std::function<void(StoreReader&)>& body);
  /// The figures of the status; zeros while the store cannot be read. If no other daemon writes to the store,
  /// they are counted once per commit, as that takes long.
  StoreCounts counts();
  /// Runs `body` in one transaction on the writer thread and waits until it is committed. An error of `body`
  /// rolls back and is thrown here.
  void write(const std::function<void(StoreWriter&)>& body);
  /// Like write() without waiting; a failure is logged.
  void write_behind(std::function<void(StoreWriter&)> body);

  /// The daemons that have the same database open; null: none can.
  store::Peers* peers() const;

  /// A copy of one committed state, in a file without a name: closing it removes it. Takes as much room next
  /// to the store. One at a time. FailedPrecondition: PostgreSQL has its own means.
  UniqueFd snapshot() const;

  /// Why the store takes no writes now; absent: it does. Ends with the first write that succeeds.
  std::optional<std::string> read_only_reason() const;
  /// Rows that reads have left out since the store was opened, because a value in them is damaged.
  std::uint64_t damaged_rows() const { return damaged_->count(); }
  /// Tries a write if the store is read-only; true if it takes writes now.
  bool try_recover();

 private:
  Store(unsigned readers, std::unique_ptr<store::DamagedRows> damaged, std::unique_ptr<store::Engine> engine);

  const std::unique_ptr<store::DamagedRows> damaged_;
  const std::unique_ptr<store::Engine> engine_;
  std::unique_ptr<store::WriterThread> writer_;
  std::unique_ptr<store::ReaderPool> readers_;
  std::mutex counts_mutex_;
  std::optional<StoreCounts> counted_;  // guarded by counts_mutex_
  std::uint64_t counted_at_ = 0;        // guarded by counts_mutex_; commits
};

}  // namespace cubind
