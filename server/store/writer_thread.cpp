#include "server/store/writer_thread.hpp"

#include <exception>
#include <utility>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/log.hpp"
#include "server/store/location.hpp"
#include "server/store/migration.hpp"
#include "server/store/sql.hpp"

namespace cubind::store {
namespace {

/// The wait for another process's lock on the file after a write has waited in vain: neither the job thread
/// nor a caller waits for each of the next ones.
constexpr std::chrono::milliseconds kPatienceWhileReadOnly{50};

std::string random_store_id() {
  const std::string bytes = read_file("/proc/sys/kernel/random/uuid");
  return std::string(Digest::of(bytes).view().substr(0, 16));
}

/// SQLite's word for a table, a column or a format that it does not know is no more than "error".
void errors_as_damage(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::Internal) {
      throw Error(ErrorCode::DataLoss, error.where(), error.cause());
    }
    throw;
  }
}

}  // namespace

WriterThread::WriterThread(const StoreOptions& options, DamagedRows& damaged)
    : patience_(options.patience),
      mark_(options.path),
      database_(options.path, Database::Mode::Create),
      damaged_(damaged) {
  set_up(options);
  thread_ = std::thread([this] { run(); });
}

WriterThread::~WriterThread() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void WriterThread::write(const std::function<void(StoreWriter&)>& body) {
  enqueue({Kind::Transaction, body, true, {}}).get();
}

void WriterThread::write_behind(std::function<void(StoreWriter&)> body) {
  enqueue({Kind::Transaction, std::move(body), false, {}});
}

std::optional<std::string> WriterThread::read_only_reason() const {
  const std::lock_guard lock(mutex_);
  return read_only_reason_;
}

bool WriterThread::try_recover() {
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

void WriterThread::set_up(const StoreOptions& options) {
  const std::filesystem::path& path = options.path;
  errors_as_damage([&] {
    if (mend_header(database_, schema_steps())) {
      log_error(path.string() + ": the numbers of its header were damaged and have been written again");
    }
    // Checked before any other write, also of the journal's mode: a foreign file stays unchanged.
    require_ours(database_, schema_steps(), path.string());
  });
  database_.set_patience(patience_);
  database_.execute("PRAGMA journal_mode = WAL");
  database_.execute("PRAGMA synchronous = NORMAL");
  database_.execute("PRAGMA foreign_keys = ON");
  if (!migrate(database_, schema_steps(), path.string(), [&] { insert_meta(path); })) {
    make_usable(path);
    redraw_if_restored(path);
  }
  mark_.set(generation());
  if (options.max_pages > 0) {
    database_.execute("PRAGMA max_page_count = " + std::to_string(options.max_pages));
  }
}

/// A damaged index hides rows or leads to others, without an error: indexes are made of their tables again.
void WriterThread::make_usable(const std::filesystem::path& path) {
  if (const auto damage = first_damage()) {
    log_error(path.string() + " is damaged (" + *damage + "): its indexes are rebuilt");
    try {
      database_.execute("REINDEX");
    } catch (const Error& error) {
      log_error(path.string() + ": an index cannot be rebuilt: " + error.what());
    }
  }
  require_usable();
}

std::optional<std::string> WriterThread::first_damage() {
  for (const std::string* sql : sql::kChecks) {
    try {
      Statement query = database_.query(*sql);
      while (query.step()) {
        if (std::string found = query.blob(); found != "ok") {
          return found;
        }
      }
    } catch (const Error& error) {
      return error.cause();
    }
  }
  return std::nullopt;
}

void WriterThread::require_usable() {
  errors_as_damage([&] {
    for (const std::string* sql : sql::kStatements) {
      database_.query(*sql);
    }
    for (const std::string* sql : sql::kWholeTables) {
      database_.query(*sql).run();
    }
    generation();
  });
}

void WriterThread::insert_meta(const std::filesystem::path& path) {
  const std::string id = random_store_id();
  database_.query(sql::kInsertMeta)
      .bind(Statement::bytes(id), file_identity(path), RealClock().wall_text())
      .run();
}

/// A copy that replaces the file or overwrites it gets a new id: its numbers of generations mean
/// something else from here on.
void WriterThread::redraw_if_restored(const std::filesystem::path& path) {
  const Generation found = generation();
  const std::string identity = file_identity(path);
  if (identity == stored_identity() && !mark_.is_ahead_of(found)) {
    return;
  }
  const std::string id = random_store_id();
  database_.query(sql::kRedrawStoreId).bind(Statement::bytes(id), identity).run();
  log_info(path.string() + ": is a copy of the earlier store: its generations get a new id");
}

std::string WriterThread::stored_identity() {
  Statement query = database_.query(sql::kMeta);
  query.step();
  query.blob();
  query.integer();
  return query.blob();  // a damaged one is another file's
}

std::future<void> WriterThread::enqueue(Task task) {
  std::future<void> done = task.done.get_future();
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  changed_.notify_one();
  return done;
}

void WriterThread::run() {
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

void WriterThread::run(Task& task) {
  try {
    if (task.kind == Kind::Probe) {
      // Grows the file and frees what it grew by: the next writes have at least that much room.
      database_.query(sql::kInsertBallast).run();
      database_.query(sql::kDeleteBallast).run();
    } else {
      run_transaction(task.body);
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

void WriterThread::run_transaction(const std::function<void(StoreWriter&)>& body) {
  Generation after;
  database_.transaction("BEGIN IMMEDIATE", [&] {
    StoreWriter writer(database_, damaged_, RealClock().wall_text());
    body(writer);
    after = writer.generation();
  });
  mark_.set(after);
}

void WriterThread::note_success() {
  const std::lock_guard lock(mutex_);
  if (read_only_reason_) {
    database_.set_patience(patience_);
    log_info("store: takes writes again");
  }
  read_only_reason_.reset();
}

void WriterThread::note_failure(const Error& error) {
  const bool disk = error.where() == "store" &&
                    (error.code() == ErrorCode::ResourceExhausted || error.code() == ErrorCode::Unavailable);
  if (!disk) {
    return;
  }
  const std::lock_guard lock(mutex_);
  if (!read_only_reason_) {
    database_.set_patience(kPatienceWhileReadOnly);
    log_error(std::string("store: read-only until a write succeeds: ") + error.what());
  }
  read_only_reason_ = error.what();
}

}  // namespace cubind::store
