#include "server/store/store.hpp"

#include <condition_variable>
#include <deque>
#include <exception>
#include <future>
#include <mutex>
#include <thread>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/log.hpp"
#include "server/store/generation_mark.hpp"
#include "server/store/location.hpp"
#include "server/store/migration.hpp"
#include "server/store/session.hpp"
#include "server/store/sql.hpp"

namespace cubind {
namespace {

using store::DamagedRows;
using store::Database;
using store::Query;
using store::Session;

/// For another process's lock on the file, once a write has waited in vain: neither the job thread nor a
/// caller waits for each of the next ones.
constexpr std::chrono::milliseconds kPatienceWhileReadOnly{50};

std::string random_store_id() {
  const std::string bytes = read_file("/proc/sys/kernel/random/uuid");
  return std::string(Digest::of(bytes).view().substr(0, 16));
}

/// Runs `body` in a transaction; on any exception nothing of it stays.
void in_transaction(Database& database, DamagedRows& damaged, const char* begin,
                    const std::function<void(Session&)>& body) {
  database.execute(begin);
  try {
    Session session(database, damaged, RealClock().wall_text());
    body(session);
    database.execute("COMMIT");
  } catch (...) {
    // A full disk has rolled back already.
    if (database.in_transaction()) {
      database.execute("ROLLBACK");
    }
    throw;
  }
}

/// Connections for reading. Thread-safe: a connection is used by one thread at a time.
class ReaderPool {
 public:
  ReaderPool(std::filesystem::path path, unsigned size, DamagedRows& damaged)
      : path_(std::move(path)), size_(size), damaged_(damaged) {}

  void read(const std::function<void(StoreReader&)>& body) {
    std::unique_ptr<Database> database = take();
    try {
      in_transaction(*database, damaged_, "BEGIN", [&](Session& session) { body(session); });
    } catch (...) {
      give(std::move(database));
      throw;
    }
    give(std::move(database));
  }

 private:
  std::unique_ptr<Database> take() {
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

  std::unique_ptr<Database> open() {
    try {
      return std::make_unique<Database>(path_, Database::Mode::ReadOnly);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      --open_;
      throw;
    }
  }

  void give(std::unique_ptr<Database> database) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(database));
    changed_.notify_one();
  }

  const std::filesystem::path path_;
  const unsigned size_;
  DamagedRows& damaged_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<Database>> idle_;  // guarded by mutex_
  unsigned open_ = 0;                            // guarded by mutex_
};

class SqliteStore final : public Store {
 public:
  SqliteStore(const StoreOptions& options, UniqueFd lock)
      : path_(options.path),
        lock_(std::move(lock)),
        patience_(options.patience),
        mark_(options.path),
        writer_(options.path, Database::Mode::Create),
        readers_(options.path, options.readers, damaged_) {
    set_up(options);
    thread_ = std::thread([this] { run(); });
  }

  ~SqliteStore() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  const std::filesystem::path& path() const override { return path_; }

  void read(const std::function<void(StoreReader&)>& body) override { readers_.read(body); }

  void write(const std::function<void(StoreWriter&)>& body) override {
    enqueue({Kind::Transaction, body, true, {}}).get();
  }

  void write_behind(std::function<void(StoreWriter&)> body) override {
    enqueue({Kind::Transaction, std::move(body), false, {}});
  }

  std::optional<std::string> read_only_reason() const override {
    const std::lock_guard lock(mutex_);
    return read_only_reason_;
  }

  std::uint64_t damaged_rows() const override { return damaged_.count(); }

  bool try_recover() override {
    if (!read_only_reason()) {
      return true;
    }
    try {
      enqueue({Kind::Probe, {}, true, {}}).get();
      return true;
    } catch (const Error&) {
      return false;
    }
  }

 private:
  enum class Kind { Transaction, Probe };
  struct Task {
    Kind kind = Kind::Transaction;
    std::function<void(StoreWriter&)> body;
    bool awaited = true;
    std::promise<void> done;
  };

  void set_up(const StoreOptions& options) {
    // Before anything is written, the journal's mode too: a file of others stays as it is.
    store::require_ours(writer_, store::schema_steps(), path_.string());
    writer_.set_patience(patience_);
    writer_.execute("PRAGMA journal_mode = WAL");
    writer_.execute("PRAGMA synchronous = NORMAL");
    writer_.execute("PRAGMA foreign_keys = ON");
    if (!store::migrate(writer_, store::schema_steps(), path_.string(), [this] { insert_meta(); })) {
      redraw_if_restored();
    }
    mark_.set(generation());
    if (options.max_pages > 0) {
      writer_.execute("PRAGMA max_page_count = " + std::to_string(options.max_pages));
    }
  }

  void insert_meta() {
    const std::string id = random_store_id();
    writer_.query(store::sql::kInsertMeta)
        .bind(Query::bytes(id), store::file_identity(path_), RealClock().wall_text())
        .run();
  }

  Generation generation() { return Session(writer_, damaged_, RealClock().wall_text()).generation(); }

  /// A copy in the place of the file or written over it gets a new id: its numbers of generations mean
  /// something else from here on.
  void redraw_if_restored() {
    const Generation found = generation();
    const std::string identity = store::file_identity(path_);
    if (identity == stored_identity() && !mark_.is_ahead_of(found)) {
      return;
    }
    const std::string id = random_store_id();
    writer_.query(store::sql::kRedrawStoreId).bind(Query::bytes(id), identity).run();
    log_info(path_.string() + ": is a copy of the earlier store: its generations are counted anew");
  }

  std::string stored_identity() {
    Query query = writer_.query(store::sql::kMeta);
    query.step();
    query.blob();
    query.integer();
    return query.blob();  // a damaged one is another file's
  }

  std::future<void> enqueue(Task task) {
    std::future<void> done = task.done.get_future();
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    changed_.notify_one();
    return done;
  }

  void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return stopping_ || !tasks_.empty(); });
      if (tasks_.empty()) {
        return;
      }
      Task task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      run(task);
      lock.lock();
    }
  }

  void run(Task& task) {
    try {
      if (task.kind == Kind::Probe) {
        // Grows the file and frees what it grew by: the next writes have at least that much room.
        writer_.query(store::sql::kInsertBallast).run();
        writer_.query(store::sql::kDeleteBallast).run();
      } else {
        Generation after;
        in_transaction(writer_, damaged_, "BEGIN IMMEDIATE", [&](Session& session) {
          task.body(session);
          after = session.generation();
        });
        mark_.set(after);
      }
      note_success();
      task.done.set_value();
    } catch (const std::exception& fault) {
      if (const auto* error = dynamic_cast<const Error*>(&fault)) {
        note_failure(*error);
      }
      if (!task.awaited) {
        log_warning(std::string("store: a write behind an answer failed: ") + fault.what());
      }
      task.done.set_exception(std::current_exception());
    }
  }

  void note_success() {
    const std::lock_guard lock(mutex_);
    if (read_only_reason_) {
      writer_.set_patience(patience_);
      log_info("store: takes writes again");
    }
    read_only_reason_.reset();
  }

  void note_failure(const Error& error) {
    const bool disk = error.where() == "store" && (error.code() == ErrorCode::ResourceExhausted ||
                                                   error.code() == ErrorCode::Unavailable);
    if (!disk) {
      return;
    }
    const std::lock_guard lock(mutex_);
    if (!read_only_reason_) {
      writer_.set_patience(kPatienceWhileReadOnly);
      log_error(std::string("store: read-only until a write succeeds: ") + error.what());
    }
    read_only_reason_ = error.what();
  }

  const std::filesystem::path path_;
  const UniqueFd lock_;
  const std::chrono::milliseconds patience_;
  store::GenerationMark mark_;  // this and writer_ are used by thread_ alone once that runs
  Database writer_;
  store::DamagedRows damaged_;
  ReaderPool readers_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;                       // guarded by mutex_
  std::optional<std::string> read_only_reason_;  // guarded by mutex_
  bool stopping_ = false;                        // guarded by mutex_
  std::thread thread_;
};

}  // namespace

std::unique_ptr<Store> Store::open(const StoreOptions& options) {
  create_folders(absolute_path(options.path).parent_path(), 0700);
  const std::filesystem::path path = store::resolved(absolute_path(options.path));
  store::refuse_network_file_system(path.parent_path());
  UniqueFd lock = store::lock_file(path);
  StoreOptions absolute = options;
  absolute.path = path;
  return std::make_unique<SqliteStore>(absolute, std::move(lock));
}

}  // namespace cubind
