#include "server/store/sqlite/sqlite_engine.hpp"

#include <utility>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/log.hpp"
#include "server/store/sql.hpp"
#include "server/store/sqlite/backup.hpp"
#include "server/store/sqlite/schema.hpp"
#include "server/store/sqlite/sqlite_sql.hpp"
#include "server/store/store_id.hpp"

namespace cubind::store {
namespace {

/// The wait for another process's lock on the file after a write has waited in vain: neither the job thread
/// nor a caller waits for each of the next ones.
constexpr std::chrono::milliseconds kPatienceWhileReadOnly{50};

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

/// The engine, of a new file where the present one is damaged.
std::unique_ptr<SqliteEngine> open_file(const StoreOptions& options, DamagedRows& damaged) {
  const bool was_ours = GenerationMark::was_set_for(options.path);
  if (was_ours && mend_write_version(options.path)) {
    log_error(options.path.string() + ": a number of its header was damaged and has been written again");
  }
  try {
    return std::make_unique<SqliteEngine>(options, damaged);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::DataLoss) {
      throw;
    }
    if (!was_ours) {
      throw Error(ErrorCode::FailedPrecondition, options.path.string(),
                  "is no store of cubind: give --db another path (" + error.cause() + ")");
    }
    const std::filesystem::path aside = move_aside(options.path, RealClock().wall_text());
    log_error(options.path.string() + " is damaged (" + error.cause() + "): it is now " + aside.string() +
              ", and a new store is begun");
  }
  return std::make_unique<SqliteEngine>(options, damaged);
}

}  // namespace

std::unique_ptr<Engine> open_sqlite(const StoreOptions& options, DamagedRows& damaged) {
  refuse_other_than_file(absolute_path(options.path));
  make_folder(absolute_path(options.path).parent_path(),
              "--db PATH or XDG_DATA_HOME names another place for the store");
  StoreOptions absolute = options;
  absolute.path = resolved(absolute_path(options.path));
  refuse_network_file_system(absolute.path.parent_path());
  refuse_hard_link(absolute.path);
  UniqueFd lock = lock_file(absolute.path, options.address);
  auto engine = open_file(absolute, damaged);
  engine->keep(std::move(lock));
  return engine;
}

SqliteEngine::SqliteEngine(const StoreOptions& options, DamagedRows& damaged)
    : path_(options.path),
      database_lock_(lock_database(path_)),
      patience_(options.patience),
      mark_(options.path),
      database_(options.path, Database::Mode::Create),
      open_file_(file_id(path_).value_or(FileId{})),
      damaged_(damaged) {
  set_up(options.max_pages);
}

std::unique_ptr<Connection> SqliteEngine::connect_reader() {
  require_open_file();
  return std::make_unique<Database>(path_, Database::Mode::ReadOnly);
}

UniqueFd SqliteEngine::snapshot() const {
  require_open_file();
  return snapshot_of(path_);
}

void SqliteEngine::write(const std::function<void(StoreWriter&)>& body) {
  require_open_file();
  Generation after;
  database_.transaction(Access::Write, [&] {
    StoreWriter writer(database_, damaged_, RealClock().wall_text());
    body(writer);
    after = writer.generation();
  });
  mark_.set(after);
}

void SqliteEngine::probe() {
  require_open_file();
  // Grows the file and frees what it grew by: the next writes have at least that much room.
  database_.query(sql::kInsertBallast).run();
  database_.query(sql::kDeleteBallast).run();
}

void SqliteEngine::set_read_only(bool is_read_only) {
  database_.set_patience(is_read_only ? kPatienceWhileReadOnly : patience_);
}

// Nothing tells SQLite: it would write on to a file without a name, which ends with the process.
void SqliteEngine::require_open_file() const {
  if (file_id(path_) != open_file_) {
    throw Error(ErrorCode::Unavailable, "store",
                path_.string() +
                    " was removed or replaced while this daemon has it open: put it back, or "
                    "restart the daemon, which goes on with the file that has this name then");
  }
}

void SqliteEngine::set_up(std::uint32_t max_pages) {
  errors_as_damage([&] {
    if (mend_header(database_)) {
      log_error(path_.string() + ": the numbers of its header were damaged and have been written again");
    }
    // Checked before any other write, also of the journal's mode: a file that is refused stays unchanged.
    require_ours(database_, path_.string());
  });
  database_.set_patience(patience_);
  database_.execute("PRAGMA journal_mode = WAL");
  database_.execute("PRAGMA synchronous = NORMAL");
  database_.execute("PRAGMA foreign_keys = ON");
  if (!create_schema(database_, path_.string(), [&] { insert_meta(); })) {
    make_usable();
    redraw_if_restored();
  }
  mark_.set(generation());
  if (max_pages > 0) {
    database_.execute("PRAGMA max_page_count = " + std::to_string(max_pages));
  }
}

/// A damaged index hides rows or leads to others, without an error: indexes are made of their tables again.
void SqliteEngine::make_usable() {
  if (const auto damage = first_damage()) {
    log_error(path_.string() + " is damaged (" + *damage + "): its indexes are rebuilt");
    try {
      database_.execute("REINDEX");
    } catch (const Error& error) {
      log_error(path_.string() + ": an index cannot be rebuilt: " + error.what());
    }
  }
  require_usable();
}

std::optional<std::string> SqliteEngine::first_damage() {
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

void SqliteEngine::require_usable() {
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

void SqliteEngine::insert_meta() {
  const std::string id = new_store_id();
  const std::string identity = file_identity();
  const std::string now = RealClock().wall_text();
  database_.query(sql::kInsertMeta).bind(Statement::bytes(id), identity, now).run();
}

/// A copy that replaces the file or overwrites it gets a new id: its numbers of generations mean
/// something else from here on.
void SqliteEngine::redraw_if_restored() {
  const Generation found = generation();
  const std::string identity = file_identity();
  if (identity == stored_identity() && !mark_.is_ahead_of(found)) {
    return;
  }
  const std::string id = new_store_id();
  database_.query(sql::kRedrawStoreId).bind(Statement::bytes(id), identity).run();
  log_info(path_.string() + ": is a copy of the earlier store: its generations get a new id");
}

std::string SqliteEngine::stored_identity() {
  Statement query = database_.query(sql::kMeta);
  query.step();
  query.blob();
  query.integer();
  return query.blob();  // a damaged one is another file's
}

}  // namespace cubind::store
