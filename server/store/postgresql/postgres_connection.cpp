#include "server/store/postgresql/postgres_connection.hpp"

#include <libpq-fe.h>
#include <poll.h>

#include <array>
#include <bit>
#include <cctype>
#include <charconv>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"

namespace cubind::store {
namespace {

constexpr int kBinary = 1;

// Types of columns, from catalog/pg_type_d.h of the server's headers.
constexpr Oid kBool = 16, kBytes = 17, kInt8 = 20, kInt2 = 21, kInt4 = 23, kOid = 26, kFloat8 = 701;

std::string big_endian(std::uint64_t value) {
  std::string bytes(sizeof(value), '\0');
  for (std::size_t i = bytes.size(); i-- > 0; value >>= 8) {
    bytes[i] = static_cast<char>(value & 0xff);
  }
  return bytes;
}

std::uint64_t from_big_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (const char byte : bytes) {
    value = value << 8 | static_cast<unsigned char>(byte);
  }
  return value;
}

std::string one_line(const char* words) {
  std::string line(words ? words : "");
  while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back())) != 0) {
    line.pop_back();
  }
  for (char& c : line) {
    c = c == '\n' ? ' ' : c;
  }
  return line;
}

bool starts_with_any(std::string_view text, std::initializer_list<std::string_view> heads) {
  for (const std::string_view head : heads) {
    if (text.starts_with(head)) {
      return true;
    }
  }
  return false;
}

/// What an SQLSTATE (appendix A of PostgreSQL's manual) means for the store.
ErrorCode code_of(std::string_view state) {
  if (starts_with_any(state, {"53100", "53200"})) {  // disk full, out of memory
    return ErrorCode::ResourceExhausted;
  }
  if (starts_with_any(state, {"XX001", "XX002"})) {  // a damaged page or index
    return ErrorCode::DataLoss;
  }
  if (starts_with_any(state, {"28", "3D", "3F", "42501"})) {  // login, database, schema, permission
    return ErrorCode::FailedPrecondition;
  }
  // Connections, resources, serialization, locks, operators, I/O; 25006: the server is a standby.
  return starts_with_any(state, {"08", "53", "40", "55P", "57", "58", "25006"}) ? ErrorCode::Unavailable
                                                                                : ErrorCode::Internal;
}

Error error_of(PGconn* connection, const PGresult* result, std::string_view doing) {
  const char* state = result ? PQresultErrorField(result, PG_DIAG_SQLSTATE) : nullptr;
  const std::string words = one_line(result ? PQresultErrorMessage(result) : PQerrorMessage(connection));
  const bool is_lost = PQstatus(connection) != CONNECTION_OK;
  const ErrorCode code = is_lost ? ErrorCode::Unavailable : code_of(state ? state : "");
  std::string cause = "PostgreSQL: " + words + (state ? " (SQLSTATE " + std::string(state) + ")" : "");
  if (code == ErrorCode::ResourceExhausted) {
    cause += ": make room on its server";
  } else if (words.find("no password supplied") != std::string::npos) {
    cause += ": ~/.pgpass has no line for " + std::string(PQhost(connection)) + ":" + PQport(connection) +
             ":" + PQdb(connection) + ":" + PQuser(connection) +
             ", spelled as in the URL, or others may read the file (chmod 600)";
  } else if (state != nullptr && std::string_view(state) == "42501") {
    cause += ": make the role the owner of the database";
  } else if (!is_lost && !doing.empty()) {
    cause += ", at " + std::string(doing.substr(0, 80));
  }
  return Error(code, "store", std::move(cause));
}

void log_notice(void*, const char* words) { log_debug("store: PostgreSQL: " + one_line(words)); }

}  // namespace

std::string numbered_parameters(std::string_view sql) {
  std::string numbered;
  int next = 0;
  for (std::size_t i = 0; i < sql.size(); ++i) {
    if (sql[i] != '?') {
      numbered += sql[i];
      continue;
    }
    numbered += '$';
    if (i + 1 == sql.size() || std::isdigit(static_cast<unsigned char>(sql[i + 1])) == 0) {
      numbered += std::to_string(++next);
    }
  }
  return numbered;
}

PostgresStatement::Parameter& PostgresStatement::parameter(int index) {
  if (parameters_.size() <= static_cast<std::size_t>(index)) {
    parameters_.resize(static_cast<std::size_t>(index) + 1);
  }
  return parameters_[static_cast<std::size_t>(index)];
}

void PostgresStatement::put_made(int index, std::string bytes) {
  parameter(index) = {std::move(bytes), {}, false};
}

void PostgresStatement::bind_null(int index) { parameter(index) = {{}, {}, true}; }

void PostgresStatement::bind_integer(int index, std::int64_t value) {
  put_made(index, big_endian(static_cast<std::uint64_t>(value)));
}

void PostgresStatement::bind_real(int index, double value) {
  put_made(index, big_endian(std::bit_cast<std::uint64_t>(value)));
}

void PostgresStatement::bind_text(int index, std::string_view text) {
  if (text.find('\0') == std::string_view::npos) {
    parameter(index) = {{}, text, false};
    return;
  }
  std::string without;
  for (const char c : text) {
    c == '\0' ? without.append("\xEF\xBF\xBD") : without.append(1, c);
  }
  put_made(index, std::move(without));
}

void PostgresStatement::bind_blob(int index, std::string_view bytes) {
  parameter(index) = {{}, bytes, false};
}

void PostgresStatement::run() {
  std::vector<const char*> values;
  std::vector<int> lengths;
  const std::vector<int> formats(parameters_.size(), kBinary);
  for (const Parameter& item : parameters_) {
    const std::string_view bytes = item.made.empty() ? item.bytes : std::string_view(item.made);
    values.push_back(item.is_null ? nullptr : bytes.empty() ? "" : bytes.data());
    lengths.push_back(static_cast<int>(bytes.size()));
  }
  PGresult* result =
      PQexecPrepared(connection_.connection_.get(), name_.c_str(), static_cast<int>(values.size()),
                     values.data(), lengths.data(), formats.data(), kBinary);
  rows_ = connection_.checked(result, name_);
  next_row_ = 0;
}

bool PostgresStatement::step() {
  if (!rows_) {
    run();
  }
  return next_row_++ < PQntuples(rows_.get());
}

void PostgresStatement::reset() noexcept {
  rows_.reset();
  parameters_.clear();
}

std::string_view PostgresStatement::value(int column) {
  const int row = next_row_ - 1;
  return {PQgetvalue(rows_.get(), row, column),
          static_cast<std::size_t>(PQgetlength(rows_.get(), row, column))};
}

bool PostgresStatement::is_null(int column) { return PQgetisnull(rows_.get(), next_row_ - 1, column) != 0; }

ValueKind PostgresStatement::kind(int column) {
  if (is_null(column)) {
    return ValueKind::Null;
  }
  switch (PQftype(rows_.get(), column)) {
    case kBytes:
      return ValueKind::Bytes;
    case kFloat8:
      return ValueKind::Real;
    case kBool:
    case kOid:
    case kInt2:
    case kInt4:
    case kInt8:
      return ValueKind::Integer;
    default:
      return ValueKind::Text;
  }
}

std::int64_t PostgresStatement::integer(int column) {
  const std::string_view bytes = value(column);
  const std::uint64_t raw = from_big_endian(bytes);
  switch (PQftype(rows_.get(), column)) {
    case kInt4:
      return static_cast<std::int32_t>(raw);
    case kInt2:
      return static_cast<std::int16_t>(raw);
    case kInt8:
    case kBool:
    case kOid:
      return static_cast<std::int64_t>(raw);
    default:
      throw Error(ErrorCode::Internal, "store", "column " + column_name(column) + " is no number");
  }
}

double PostgresStatement::real(int column) {
  if (PQftype(rows_.get(), column) != kFloat8) {
    throw Error(ErrorCode::Internal, "store", "column " + column_name(column) + " is no double");
  }
  return std::bit_cast<double>(from_big_endian(value(column)));
}

std::string_view PostgresStatement::text(int column) {
  switch (PQftype(rows_.get(), column)) {
    case kInt2:
    case kInt4:
    case kInt8:
      number_ = std::to_string(integer(column));
      return number_;
    default:
      return value(column);
  }
}

std::string_view PostgresStatement::blob(int column) { return text(column); }

std::string PostgresStatement::column_name(int column) { return PQfname(rows_.get(), column); }

PostgresConnection::PostgresConnection(const std::string& url, const std::string& name)
    : connection_(nullptr, PQfinish) {
  // The URL's own settings come last and hold. A network that drops everything is noticed within 6 s, for
  // which other daemons wait for a silent one.
  constexpr std::array kNames{
      "application_name", "connect_timeout",  "keepalives_idle", "keepalives_interval",
      "keepalives_count", "tcp_user_timeout", "client_encoding", "dbname"};
  const std::array<const char*, kNames.size()> values{name.c_str(), "3",    "2",    "2",
                                                      "2",          "6000", "UTF8", url.c_str()};
  std::array<const char*, kNames.size() + 1> keywords{};
  std::array<const char*, kNames.size() + 1> settings{};
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    keywords[i] = kNames[i];
    settings[i] = values[i];
  }
  constexpr int kExpandUrl = 1;
  connection_.reset(PQconnectdbParams(keywords.data(), settings.data(), kExpandUrl));
  if (!connection_) {
    throw Error(ErrorCode::ResourceExhausted, "store", "no memory for a connection to PostgreSQL");
  }
  PQsetNoticeProcessor(connection_.get(), log_notice, nullptr);
  if (PQstatus(connection_.get()) != CONNECTION_OK) {
    throw error_of(connection_.get(), nullptr, "");
  }
  require_fit();
}

void PostgresConnection::require_fit() {
  constexpr int kOldest = 130000;
  const int version = PQserverVersion(connection_.get());
  if (version < kOldest) {
    throw Error(
        ErrorCode::FailedPrecondition, "store",
        "the server is PostgreSQL " + std::to_string(version / 10000) + ", and 13 or later is needed");
  }
  const char* encoding = PQparameterStatus(connection_.get(), "server_encoding");
  if (std::string_view(encoding ? encoding : "") != "UTF8") {
    throw Error(ErrorCode::FailedPrecondition, "store",
                "the database has the encoding " + std::string(encoding ? encoding : "unknown") +
                    ": create one with CREATE DATABASE NAME ENCODING 'UTF8' TEMPLATE template0");
  }
}

std::shared_ptr<pg_result> PostgresConnection::checked(pg_result* result, std::string_view doing) {
  std::shared_ptr<pg_result> owned(result, PQclear);
  switch (PQresultStatus(result)) {
    case PGRES_TUPLES_OK:
    case PGRES_EMPTY_QUERY:
      return owned;
    case PGRES_COMMAND_OK: {
      const std::string_view count = PQcmdTuples(result);
      std::int64_t changed = 0;
      std::from_chars(count.data(), count.data() + count.size(), changed);
      changes_ = changed;
      return owned;
    }
    default:
      throw error_of(connection_.get(), result, doing);
  }
}

PreparedStatement& PostgresConnection::prepared(const std::string& sql) {
  std::unique_ptr<PostgresStatement>& statement = statements_[sql];
  if (!statement) {
    const std::string name = "s" + std::to_string(++prepared_count_);
    const std::string text = numbered_parameters(sql);
    checked(PQprepare(connection_.get(), name.c_str(), text.c_str(), 0, nullptr), sql);
    statement = std::make_unique<PostgresStatement>(*this, name);
  }
  return *statement;
}

void PostgresConnection::execute(const std::string& sql) {
  checked(PQexec(connection_.get(), sql.c_str()), sql);
}

void PostgresConnection::transaction(Access access, const std::function<void()>& body) {
  execute(access == Access::Write ? "BEGIN" : "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
  try {
    body();
    const auto result = checked(PQexec(connection_.get(), "COMMIT"), "COMMIT");
    // After an error that `body` has kept to itself the server rolls back, without another error.
    if (std::string_view(PQcmdStatus(result.get())) != "COMMIT") {
      throw Error(ErrorCode::Internal, "store", "a transaction with a failed statement was committed");
    }
  } catch (...) {
    if (PQtransactionStatus(connection_.get()) != PQTRANS_IDLE) {
      PQclear(PQexec(connection_.get(), "ROLLBACK"));
    }
    throw;
  }
}

// A server that ends says so and closes the socket. Reading that now keeps the next query from failing.
bool PostgresConnection::is_usable() const {
  PQconsumeInput(connection_.get());
  PQconsumeInput(connection_.get());
  return PQstatus(connection_.get()) == CONNECTION_OK &&
         PQtransactionStatus(connection_.get()) == PQTRANS_IDLE;
}

bool PostgresConnection::wait_for_notification(std::chrono::milliseconds longest, int wake) {
  std::array<pollfd, 2> ready{pollfd{PQsocket(connection_.get()), POLLIN, 0}, pollfd{wake, POLLIN, 0}};
  ::poll(ready.data(), ready.size(), static_cast<int>(longest.count()));
  if (PQconsumeInput(connection_.get()) == 0) {
    throw error_of(connection_.get(), nullptr, "");
  }
  bool any = false;
  while (PGnotify* notification = PQnotifies(connection_.get())) {
    PQfreemem(notification);
    any = true;
  }
  return any;
}

}  // namespace cubind::store
