#include "server/store/postgresql/postgres_engine.hpp"

#include <unistd.h>

#include <thread>
#include <utility>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "server/store/postgresql/postgres_migration.hpp"
#include "server/store/sql.hpp"
#include "server/store/store_id.hpp"

namespace cubind::store {
namespace {

using std::chrono::steady_clock;

/// Callers do not wait one after the other for a server that does not answer.
constexpr std::chrono::seconds kBetweenAttempts{1};
constexpr std::chrono::milliseconds kBetweenQuestions{200};

// "cubind"; of advisory locks, which each database has its own of.
const std::string kTakeLock = "SELECT pg_advisory_lock(109355813400164)";
const std::string kHolder =
    "SELECT coalesce(min(a.application_name), 'unknown'), coalesce(min(a.pid), 0) FROM pg_locks l JOIN "
    "pg_stat_activity a ON a.pid = l.pid WHERE l.locktype = 'advisory' AND l.granted AND "
    "(l.classid::bigint << 32) + l.objid::bigint = 109355813400164 AND l.database = (SELECT oid FROM "
    "pg_database WHERE datname = current_database())";
const std::string kForgetWriters = "DELETE FROM commits";
const std::string kInsertWriter = "INSERT INTO commits (writer, number) VALUES (?, 0)";
const std::string kNoteCommit = "UPDATE commits SET number = ? WHERE writer = ?";
/// Waits for a transaction of a lost session that is still in progress.
const std::string kLastCommit = "SELECT number FROM commits WHERE writer = ? FOR UPDATE";
/// Tells a database from its dump that was restored, and from itself at an earlier time.
const std::string kIdentity =
    "SELECT (SELECT system_identifier FROM pg_control_system())::text || '/' || (SELECT timeline_id FROM "
    "pg_control_checkpoint())::text || '/' || CAST('meta'::regclass AS oid)::text";

std::string first_text(Connection& connection, const std::string& sql) {
  Statement query = connection.query(sql);
  query.step();
  return query.text();
}

std::string session_name(const std::string& address) {
  // PostgreSQL keeps 63 bytes.
  return ("cubind pid " + std::to_string(::getpid()) + (address.empty() ? "" : " at " + address))
      .substr(0, 63);
}

}  // namespace

PostgresEngine::PostgresEngine(PostgresOptions options, DamagedRows& damaged)
    : options_(std::move(options)),
      name_(session_name(options_.address)),
      damaged_(damaged),
      connection_(connect()),
      writer_(new_store_id()) {
  lock(*connection_);
  set_up();
}

std::unique_ptr<PostgresConnection> PostgresEngine::connect() {
  const std::lock_guard attempt(mutex_);
  if (last_failure_ && steady_clock::now() < next_attempt_) {
    throw Error(*last_failure_);
  }
  try {
    auto connection = std::make_unique<PostgresConnection>(options_.url, name_);
    last_failure_.reset();
    return connection;
  } catch (const Error& error) {
    last_failure_ = error;
    next_attempt_ = steady_clock::now() + kBetweenAttempts;
    throw;
  }
}

std::unique_ptr<Connection> PostgresEngine::connect_reader() { return connect(); }

UniqueFd PostgresEngine::snapshot() const {
  throw Error(ErrorCode::FailedPrecondition, "store",
              "lies in PostgreSQL: back it up by the means of its server, such as pg_dump " + options_.url);
}

void PostgresEngine::lock(PostgresConnection& connection) {
  connection.execute("SET lock_timeout = " + std::to_string(options_.patience.count()));
  try {
    connection.query(kTakeLock).run();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::Unavailable || !connection.is_usable()) {
      throw;  // not for the wait
    }
    Statement holder = connection.query(kHolder);
    holder.step();
    const std::string name = holder.text();
    throw Error(
        ErrorCode::FailedPrecondition, "store",
        "another cubind has " + options_.url + " open (\"" + name + "\", PostgreSQL's process " +
            std::to_string(holder.integer()) +
            "): end it, or give this one a database of its own. One daemon at a time uses a database");
  }
}

void PostgresEngine::set_up() {
  PostgresConnection& connection = *connection_;
  migrate_postgres(connection, postgres_schema_steps(), [&] {
    const std::string id = new_store_id();
    connection.query(sql::kInsertMeta)
        .bind(Statement::bytes(id), first_text(connection, kIdentity), RealClock().wall_text())
        .run();
  });
  connection.transaction(Access::Write, [&] {
    redraw_if_restored();
    connection.query(kForgetWriters).run();
    connection.query(kInsertWriter).bind(Statement::bytes(writer_)).run();
  });
}

void PostgresEngine::redraw_if_restored() {
  const std::string identity = first_text(*connection_, kIdentity);
  {
    Statement meta = connection_->query(sql::kMeta);
    meta.step();
    meta.blob();
    meta.integer();
    if (meta.text() == identity) {
      return;
    }
  }
  const std::string id = new_store_id();
  connection_->query(sql::kRedrawStoreId).bind(Statement::bytes(id), identity).run();
  log_info("store: the database was restored: its generations get a new id");
}

PostgresConnection& PostgresEngine::writing() {
  if (forsaken_) {
    throw Error(ErrorCode::Unavailable, "store", *forsaken_);
  }
  if (!connection_ || !connection_->is_usable()) {
    connection_.reset();  // its session's lock ends with it
    auto connection = connect();
    try {
      lock(*connection);
    } catch (const Error& error) {
      throw Error(ErrorCode::Unavailable, "store", error.cause());
    }
    require_own_store(*connection);
    connection_ = std::move(connection);
    log_info("store: is connected again");
  }
  return *connection_;
}

std::optional<std::uint64_t> PostgresEngine::last_commit(PostgresConnection& connection) {
  std::optional<std::uint64_t> number;
  connection.transaction(Access::Write, [&] {
    Statement query = connection.query(kLastCommit);
    if (query.bind(Statement::bytes(writer_)).step()) {
      number = query.unsigned_integer();
    }
  });
  return number;
}

/// While the connection was lost the lock was, too: another daemon may have written.
void PostgresEngine::require_own_store(PostgresConnection& connection) {
  const std::optional<std::uint64_t> number = last_commit(connection);
  if (number == committed_) {
    return;
  }
  forsaken_ =
      number
          ? "a write that was reported as lost is in the database: start this daemon again, which reads it"
          : "another daemon has written to the database meanwhile: start this daemon again, which reads it";
  throw Error(ErrorCode::Unavailable, "store", *forsaken_);
}

void PostgresEngine::write(const std::function<void(StoreWriter&)>& body) {
  PostgresConnection& connection = writing();
  const std::uint64_t number = committed_ + 1;
  bool is_committing = false;
  try {
    connection.transaction(Access::Write, [&] {
      StoreWriter writer(connection, damaged_, RealClock().wall_text());
      body(writer);
      connection.query(kNoteCommit).bind(number, Statement::bytes(writer_)).run();
      is_committing = true;
    });
  } catch (const Error& error) {
    if (!is_committing || connection.is_usable()) {
      throw;
    }
    settle(number, error);
  }
  committed_ = number;
}

void PostgresEngine::settle(std::uint64_t number, const Error& lost) {
  const std::optional<bool> committed = is_committed(number);
  if (committed == true) {
    log_info("store: the connection was lost during a COMMIT, and the transaction is in the database");
    return;
  }
  throw Error(lost.code(), lost.where(),
              lost.cause() + (committed ? "; nothing was written"
                                        : "; whether the transaction was committed could not be asked"));
}

std::optional<bool> PostgresEngine::is_committed(std::uint64_t number) {
  const auto deadline = steady_clock::now() + options_.settling;
  while (true) {
    try {
      connection_.reset();
      auto connection = connect();
      lock(*connection);
      const std::optional<std::uint64_t> last = last_commit(*connection);
      if (!last) {
        return std::nullopt;  // another daemon has the database by now
      }
      connection_ = std::move(connection);
      return *last == number;
    } catch (const Error&) {
      if (steady_clock::now() >= deadline) {
        return std::nullopt;
      }
      std::this_thread::sleep_for(kBetweenQuestions);
    }
  }
}

void PostgresEngine::probe() {
  write([](StoreWriter&) {});
}

}  // namespace cubind::store
