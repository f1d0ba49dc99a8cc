#include "server/store/postgresql/postgres_engine.hpp"

#include <unistd.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "base/process_host.hpp"
#include "server/store/postgresql/postgres_schema.hpp"
#include "server/store/sql.hpp"
#include "server/store/store_id.hpp"

namespace cubind::store {
namespace {

using std::chrono::steady_clock;

/// Callers do not wait one after the other for a server that does not answer: after an attempt that took long
/// they fail at once for many times as long, or until the presence has reached the server.
constexpr std::chrono::seconds kBetweenAttempts{1};
constexpr int kPauseForAttempt = 10;
constexpr std::chrono::milliseconds kBetweenQuestions{200};

// "cubind", and a number; each database has advisory locks of its own.
const std::string kLockWriters = "SELECT pg_advisory_xact_lock(109355813400165)";
/// A writer that stands still within a transaction must not stop all others, who wait a little longer.
const std::string kWriterLimits = "SET idle_in_transaction_session_timeout = '8s'; SET lock_timeout = '12s'";
const std::string kForgetDaemons =
    "DELETE FROM daemons WHERE alive_until < clock_timestamp() - interval '1 day'";
const std::string kForgetWriters = "DELETE FROM commits WHERE writer NOT IN (SELECT id FROM daemons)";
const std::string kEnterWriter =
    "INSERT INTO commits (writer, number) VALUES (?, ?) ON CONFLICT (writer) DO NOTHING";
const std::string kNoteCommit = "UPDATE commits SET number = ? WHERE writer = ?";
/// Waits for a transaction of a lost session that is still in progress.
const std::string kLastCommit = "SELECT number FROM commits WHERE writer = ? FOR UPDATE";
/// Tells a database from its dump that was restored, and from itself at an earlier time. The timeline is that
/// of the file of the log that is written now: the control file has it from the next checkpoint on.
const std::string kIdentity =
    "SELECT (SELECT system_identifier FROM pg_control_system())::text || '/' || ('x' || "
    "left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int::text || '/' || CAST('meta'::regclass AS "
    "oid)::text";

std::string first_text(Connection& connection, const std::string& sql) {
  Statement query = connection.query(sql);
  query.step();
  return query.text();
}

std::string session_name(const std::string& address) {
  // PostgreSQL keeps 63 bytes.
  return ("cubind pid " + std::to_string(::getpid()) + " on " + host_name() +
          (address.empty() ? "" : " at " + address))
      .substr(0, 63);
}

void require_schema(Connection& connection) {
  if (!has_schema(connection)) {
    throw Error(ErrorCode::FailedPrecondition, "store",
                "was replaced by an empty database meanwhile: start this daemon again");
  }
}

}  // namespace

PostgresEngine::PostgresEngine(PostgresOptions options, DamagedRows& damaged)
    : options_(std::move(options)),
      name_(session_name(options_.address)),
      damaged_(damaged),
      connection_(connect()),
      writer_(new_store_id()) {
  set_up();
}

std::unique_ptr<PostgresConnection> PostgresEngine::connect() {
  const std::lock_guard one_at_a_time(attempt_);
  {
    const std::lock_guard lock(mutex_);
    if (last_failure_ && steady_clock::now() < next_attempt_) {
      throw Error(*last_failure_);
    }
  }
  return try_to_connect();
}

std::unique_ptr<PostgresConnection> PostgresEngine::try_to_connect() {
  const auto began = steady_clock::now();
  try {
    auto connection = std::make_unique<PostgresConnection>(options_.url, name_);
    const std::lock_guard lock(mutex_);
    last_failure_.reset();
    return connection;
  } catch (const Error& error) {
    const auto now = steady_clock::now();
    const std::lock_guard lock(mutex_);
    last_failure_ = error;
    next_attempt_ =
        now + std::max<steady_clock::duration>(kBetweenAttempts, kPauseForAttempt * (now - began));
    throw;
  }
}

std::unique_ptr<Connection> PostgresEngine::connect_reader() { return connect(); }

UniqueFd PostgresEngine::snapshot() const {
  throw Error(ErrorCode::FailedPrecondition, "store",
              "lies in PostgreSQL: back it up by the means of its server, such as pg_dump " + options_.url);
}

void PostgresEngine::set_up() {
  connection_->execute(kWriterLimits);
  create_store();
  // First: a daemon that starts forgets the writers without a presence.
  presence_ = std::make_unique<PostgresPresence>(writer_, name_, [this] { return try_to_connect(); });
  connection_->transaction(Access::Write, [&] {
    connection_->query(kLockWriters).run();
    redraw_if_restored(*connection_);
    connection_->query(kForgetDaemons).run();
    connection_->query(kForgetWriters).run();
    connection_->query(kEnterWriter).bind(Statement::bytes(writer_), committed_).run();
  });
}

/// Where the database is new. Daemons that start at the same time take turns.
void PostgresEngine::create_store() {
  connection_->transaction(Access::Write, [&] {
    connection_->query(kLockWriters).run();
    if (has_schema(*connection_)) {
      return;
    }
    create_schema(*connection_);
    const std::string id = new_store_id();
    const std::string identity = first_text(*connection_, kIdentity);
    const std::string now = RealClock().wall_text();
    connection_->query(sql::kInsertMeta).bind(Statement::bytes(id), identity, now).run();
  });
}

void PostgresEngine::redraw_if_restored(PostgresConnection& connection) {
  const std::string identity = first_text(connection, kIdentity);
  {
    Statement meta = connection.query(sql::kMeta);
    meta.step();
    meta.blob();
    meta.integer();
    if (meta.text() == identity) {
      return;
    }
  }
  const std::string id = new_store_id();
  connection.query(sql::kRedrawStoreId).bind(Statement::bytes(id), identity).run();
  log_info(
      "store: the database was restored, or another server has taken over: its generations get a new id");
}

PostgresConnection& PostgresEngine::writing() {
  if (!connection_ || !connection_->is_usable()) {
    connection_.reset();
    auto connection = connect();
    try {
      connection->execute(kWriterLimits);
      require_schema(*connection);
    } catch (const Error& error) {
      throw Error(ErrorCode::Unavailable, "store", error.cause());
    }
    enter_again(*connection);
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

/// A write whose outcome could not be asked may have been done: it counts, and who holds it in memory reads
/// again what is there (interruptions()).
void PostgresEngine::enter_again(PostgresConnection& connection) {
  presence_->note_interruption();
  const std::optional<std::uint64_t> number = last_commit(connection);
  committed_ = number.value_or(committed_);
  connection.transaction(Access::Write, [&] {
    connection.query(kLockWriters).run();
    redraw_if_restored(connection);
    connection.query(kEnterWriter).bind(Statement::bytes(writer_), committed_).run();
  });
}

void PostgresEngine::write(const std::function<void(StoreWriter&)>& body) {
  try {
    run(body);
  } catch (const Error& error) {
    if (error.where() == "store" && error.code() == ErrorCode::Unavailable) {
      presence_->note_interruption();
    }
    throw;
  }
}

void PostgresEngine::run(const std::function<void(StoreWriter&)>& body) {
  PostgresConnection& connection = writing();
  const std::uint64_t number = committed_ + 1;
  bool is_committing = false;
  try {
    connection.transaction(Access::Write, [&] {
      connection.query(kLockWriters).run();
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
      connection_.reset();  // writing() makes the next one, and looks whether it is the same database
      const auto connection = connect();
      connection->execute(kWriterLimits);
      const std::optional<std::uint64_t> last = last_commit(*connection);
      return last ? std::optional(*last == number) : std::nullopt;
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
