#include "server/store/database.hpp"

#include <sqlite3.h>

#include <bit>
#include <cmath>
#include <memory>

#include "base/log.hpp"
#include "base/text.hpp"

namespace cubind::store {

namespace {

/// row_sum(VALUES...): SHA-256 of their types, lengths and bytes.
void row_sum(sqlite3_context* context, int count, sqlite3_value** values) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    const int type = sqlite3_value_type(values[i]);
    std::string bytes;
    if (type == SQLITE_INTEGER) {
      bytes = std::to_string(sqlite3_value_int64(values[i]));
    } else if (type == SQLITE_FLOAT) {
      bytes = std::to_string(std::bit_cast<std::uint64_t>(sqlite3_value_double(values[i])));
    } else if (const void* data = sqlite3_value_blob(values[i])) {
      bytes.assign(static_cast<const char*>(data), static_cast<std::size_t>(sqlite3_value_bytes(values[i])));
    }
    text += std::to_string(type) + " " + std::to_string(bytes.size()) + " " + bytes;
  }
  const Digest sum = Digest::of(text);
  sqlite3_result_blob(context, sum.view().data(), static_cast<int>(sum.view().size()), SQLITE_TRANSIENT);
}

void define_functions(sqlite3* connection) {
  constexpr int kAnyCount = -1;
  const int code =
      sqlite3_create_function_v2(connection, "row_sum", kAnyCount, SQLITE_UTF8 | SQLITE_DETERMINISTIC,
                                 nullptr, row_sum, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) {
    throw sqlite_error(connection, code, "define row_sum");
  }
}

}  // namespace

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

Statement::~Statement() {
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
}

void Statement::check(int code) {
  if (code != SQLITE_OK) {
    throw sqlite_error(connection_, code, "bind");
  }
}

void Statement::put(std::int64_t value) { check(sqlite3_bind_int64(statement_, next_parameter_++, value)); }

void Statement::put(double value) { check(sqlite3_bind_double(statement_, next_parameter_++, value)); }

void Statement::put(std::string_view text) {
  const char* data = text.empty() ? "" : text.data();
  check(sqlite3_bind_text64(statement_, next_parameter_++, data, text.size(), SQLITE_STATIC, SQLITE_UTF8));
}

void Statement::put(Bytes bytes) {
  const char* data = bytes.bytes.empty() ? "" : bytes.bytes.data();
  check(sqlite3_bind_blob64(statement_, next_parameter_++, data, bytes.bytes.size(), SQLITE_STATIC));
}

void Statement::put(const Digest& digest) { put(Bytes{digest.view()}); }

void Statement::put(const std::optional<Digest>& digest) {
  if (digest) {
    put(*digest);
  } else {
    check(sqlite3_bind_null(statement_, next_parameter_++));
  }
}

bool Statement::step() {
  next_column_ = 0;
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) {
    return true;
  }
  if (code == SQLITE_DONE) {
    return false;
  }
  throw sqlite_error(connection_, code, sqlite3_sql(statement_));
}

void Statement::run() {
  while (step()) {
  }
}

std::int64_t Statement::integer() { return sqlite3_column_int64(statement_, next_column_++); }

double Statement::real() {
  const double value = sqlite3_column_double(statement_, next_column_++);
  if (!std::isfinite(value)) {
    throw Error(ErrorCode::DataLoss, "", "is not a finite number");
  }
  return value;
}

std::string Statement::text() {
  const int column = next_column_++;
  const auto* data = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  std::string text(data ? data : "", static_cast<std::size_t>(sqlite3_column_bytes(statement_, column)));
  // A protobuf string with such a byte is written and never read.
  if (valid_utf8(text) != text) {
    throw Error(ErrorCode::DataLoss, "", "is not in UTF-8: " + quoted(valid_utf8(text)));
  }
  return text;
}

std::string Statement::blob() {
  const int column = next_column_++;
  const auto* data = static_cast<const char*>(sqlite3_column_blob(statement_, column));
  return data ? std::string(data, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column)))
              : std::string();
}

Digest Statement::digest() {
  const auto digest = Digest::from_bytes(blob());
  if (!digest) {
    throw Error(ErrorCode::DataLoss, "", "holds no digest of 32 bytes");
  }
  return *digest;
}

std::optional<Digest> Statement::optional_digest() {
  if (sqlite3_column_type(statement_, next_column_) == SQLITE_NULL) {
    ++next_column_;
    return std::nullopt;
  }
  return digest();
}

std::optional<std::uint64_t> Statement::optional_unsigned() {
  if (sqlite3_column_type(statement_, next_column_) == SQLITE_NULL) {
    ++next_column_;
    return std::nullopt;
  }
  return unsigned_integer();
}

std::string Statement::row_name() {
  const bool is_digest = sqlite3_column_type(statement_, 0) == SQLITE_BLOB;
  const auto* data = static_cast<const char*>(sqlite3_column_blob(statement_, 0));
  const std::string name(data ? data : "", static_cast<std::size_t>(sqlite3_column_bytes(statement_, 0)));
  return is_digest ? Digest::from_bytes(name).value_or(Digest{}).hex() : name;
}

std::string Statement::column() const { return sqlite3_column_name(statement_, next_column_ - 1); }

Database::Database(const std::filesystem::path& path, Mode mode) {
  const int flags = mode == Mode::Create ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY;
  const int code = sqlite3_open_v2(path.c_str(), &connection_, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  if (code != SQLITE_OK) {
    const std::unique_ptr<sqlite3, int (*)(sqlite3*)> failed(connection_, sqlite3_close_v2);
    throw sqlite_error(failed.get(), code, "open " + path.string());
  }
  set_patience(std::chrono::seconds(5));
  define_functions(connection_);
}

void Database::set_patience(std::chrono::milliseconds patience) {
  sqlite3_busy_timeout(connection_, static_cast<int>(patience.count()));
}

Database::~Database() {
  for (const auto& [sql, statement] : statements_) {
    sqlite3_finalize(statement);
  }
  if (sqlite3_close(connection_) != SQLITE_OK) {
    log_error("store: a connection was closed while a statement ran");
  }
}

Statement Database::query(const std::string& sql) {
  sqlite3_stmt*& statement = statements_[sql];
  if (!statement) {
    const int code = sqlite3_prepare_v3(connection_, sql.c_str(), static_cast<int>(sql.size() + 1),
                                        SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
    if (code != SQLITE_OK) {
      throw sqlite_error(connection_, code, sql);
    }
  }
  return {connection_, statement};
}

void Database::execute(const std::string& sql) {
  const int code = sqlite3_exec(connection_, sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) {
    throw sqlite_error(connection_, code, sql.substr(0, 80));
  }
}

std::int64_t Database::changes() const { return sqlite3_changes64(connection_); }

void Database::transaction(const std::string& begin, const std::function<void()>& body) {
  execute(begin);
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
