#include "server/store/sqlite/database.hpp"

#include <sqlite3.h>

#include "base/log.hpp"

namespace cubind::store {

Error sqlite_error(sqlite3* connection, int code, std::string_view doing) {
  if ((code & 0xff) == SQLITE_FULL) {
    return Error(ErrorCode::ResourceExhausted, "store",
                 "has no room for this (database or disk is full, SQLite code " + std::to_string(code) +
                     "): make room on its disk, or raise --db-max-bytes");
  }
  const std::string cause =
      std::string(doing) + ": " + (connection ? sqlite3_errmsg(connection) : sqlite3_errstr(code)) +
      " (SQLite code " + std::to_string(connection ? sqlite3_extended_errcode(connection) : code) + ")";
  switch (code & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return Error(ErrorCode::DataLoss, "store", cause);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_IOERR:
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
      return Error(ErrorCode::Unavailable, "store", cause);
    default:
      return Error(ErrorCode::Internal, "store", cause);
  }
}

SqliteStatement::SqliteStatement(sqlite3* connection, const std::string& sql) : connection_(connection) {
  const int code = sqlite3_prepare_v3(connection, sql.c_str(), static_cast<int>(sql.size() + 1),
                                      SQLITE_PREPARE_PERSISTENT, &statement_, nullptr);
  if (code != SQLITE_OK) {
    throw sqlite_error(connection, code, sql);
  }
}

SqliteStatement::~SqliteStatement() { sqlite3_finalize(statement_); }

void SqliteStatement::reset() noexcept {
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
}

void SqliteStatement::check(int code) {
  if (code != SQLITE_OK) {
    throw sqlite_error(connection_, code, "bind");
  }
}

void SqliteStatement::bind_null(int parameter) { check(sqlite3_bind_null(statement_, parameter + 1)); }

void SqliteStatement::bind_integer(int parameter, std::int64_t value) {
  check(sqlite3_bind_int64(statement_, parameter + 1, value));
}

void SqliteStatement::bind_real(int parameter, double value) {
  check(sqlite3_bind_double(statement_, parameter + 1, value));
}

void SqliteStatement::bind_text(int parameter, std::string_view text) {
  const char* data = text.empty() ? "" : text.data();
  check(sqlite3_bind_text64(statement_, parameter + 1, data, text.size(), SQLITE_STATIC, SQLITE_UTF8));
}

void SqliteStatement::bind_blob(int parameter, std::string_view bytes) {
  const char* data = bytes.empty() ? "" : bytes.data();
  check(sqlite3_bind_blob64(statement_, parameter + 1, data, bytes.size(), SQLITE_STATIC));
}

bool SqliteStatement::step() {
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) {
    return true;
  }
  if (code == SQLITE_DONE) {
    return false;
  }
  throw sqlite_error(connection_, code, sqlite3_sql(statement_));
}

bool SqliteStatement::is_null(int column) { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }

ValueKind SqliteStatement::kind(int column) {
  switch (sqlite3_column_type(statement_, column)) {
    case SQLITE_INTEGER:
      return ValueKind::Integer;
    case SQLITE_FLOAT:
      return ValueKind::Real;
    case SQLITE_TEXT:
      return ValueKind::Text;
    case SQLITE_BLOB:
      return ValueKind::Bytes;
    default:
      return ValueKind::Null;
  }
}

std::int64_t SqliteStatement::integer(int column) { return sqlite3_column_int64(statement_, column); }

double SqliteStatement::real(int column) { return sqlite3_column_double(statement_, column); }

std::string_view SqliteStatement::text(int column) {
  const auto* data = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  return {data ? data : "", static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
}

std::string_view SqliteStatement::blob(int column) {
  const auto* data = static_cast<const char*>(sqlite3_column_blob(statement_, column));
  return {data ? data : "", static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
}

std::string SqliteStatement::column_name(int column) { return sqlite3_column_name(statement_, column); }

Database::Database(const std::filesystem::path& path, Mode mode) {
  const int flags = mode == Mode::Create ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY;
  const int code = sqlite3_open_v2(path.c_str(), &connection_, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  if (code != SQLITE_OK) {
    const std::unique_ptr<sqlite3, int (*)(sqlite3*)> failed(connection_, sqlite3_close_v2);
    throw sqlite_error(failed.get(), code, "open " + path.string());
  }
  set_patience(std::chrono::seconds(5));
}

void Database::set_patience(std::chrono::milliseconds patience) {
  sqlite3_busy_timeout(connection_, static_cast<int>(patience.count()));
}

Database::~Database() {
  statements_.clear();
  if (sqlite3_close(connection_) != SQLITE_OK) {
    log_error("store: a connection was closed while a statement ran");
  }
}

PreparedStatement& Database::prepared(const std::string& sql) {
  std::unique_ptr<SqliteStatement>& statement = statements_[sql];
  if (!statement) {
    statement = std::make_unique<SqliteStatement>(connection_, sql);
  }
  return *statement;
}

void Database::execute(const std::string& sql) {
  const int code = sqlite3_exec(connection_, sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) {
    throw sqlite_error(connection_, code, sql.substr(0, 80));
  }
}

void Database::copy_to(const std::filesystem::path& to) {
  const Database copy(to, Mode::Create);
  constexpr int kEveryPage = -1;
  sqlite3_backup* const backup = sqlite3_backup_init(copy.connection_, "main", connection_, "main");
  if (!backup) {
    throw sqlite_error(copy.connection_, sqlite3_extended_errcode(copy.connection_),
                       "copy to " + to.string());
  }
  const int ended = sqlite3_backup_step(backup, kEveryPage);
  const int finished = sqlite3_backup_finish(backup);
  if (ended != SQLITE_DONE) {
    throw sqlite_error(copy.connection_, finished != SQLITE_OK ? finished : ended, "copy to " + to.string());
  }
}

std::int64_t Database::changes() const { return sqlite3_changes64(connection_); }

void Database::transaction(Access access, const std::function<void()>& body) {
  execute(access == Access::Write ? "BEGIN IMMEDIATE" : "BEGIN");
  try {
    body();
    execute("COMMIT");
  } catch (...) {
    // A full disk has rolled back already.
    if (sqlite3_get_autocommit(connection_) == 0) {
      execute("ROLLBACK");
    }
    throw;
  }
}

}  // namespace cubind::store
