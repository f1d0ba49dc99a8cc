// PostgreSQL as a driver of the store, by libpq.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "server/store/connection.hpp"

struct pg_conn;
struct pg_result;

namespace cubind::store {

class PostgresConnection;

/// Values travel in binary form. A text with a NUL byte, which PostgreSQL does not take, gets U+FFFD in its
/// place: only free text (logs, causes) can have one, names are refused with control characters.
class PostgresStatement final : public PreparedStatement {
 public:
  PostgresStatement(PostgresConnection& connection, std::string name)
      : connection_(connection), name_(std::move(name)) {}

  void bind_null(int parameter) override;
  void bind_integer(int parameter, std::int64_t value) override;
  void bind_real(int parameter, double value) override;
  void bind_text(int parameter, std::string_view text) override;
  void bind_blob(int parameter, std::string_view bytes) override;
  bool step() override;
  void reset() noexcept override;

  bool is_null(int column) override;
  ValueKind kind(int column) override;
  std::int64_t integer(int column) override;
  double real(int column) override;
  std::string_view text(int column) override;
  std::string_view blob(int column) override;
  std::string column_name(int column) override;

 private:
  struct Parameter {
    std::string made;  // bytes that the statement makes itself
    std::string_view bytes;
    bool is_null = false;
  };
  Parameter& parameter(int index);
  void put_made(int index, std::string bytes);
  void run();
  std::string_view value(int column);

  PostgresConnection& connection_;
  const std::string name_;
  std::vector<Parameter> parameters_;
  std::shared_ptr<pg_result> rows_;  // null: not run yet
  int next_row_ = 0;
  std::string number_;  // a number as text
};

class PostgresConnection final : public Connection {
 public:
  /// `name`: of the daemon, as the server lists its connections. Throws Unavailable where the server cannot
  /// be reached, and FailedPrecondition where it or the database is of no use for a store.
  PostgresConnection(const std::string& url, const std::string& name);

  void execute(const std::string& sql) override;
  std::int64_t changes() const override { return changes_; }
  void transaction(Access access, const std::function<void()>& body) override;
  Dialect dialect() const override { return Dialect::Postgresql; }
  bool is_usable() const override;
  /// Waits until a channel that was listened to is notified (true), `wake` can be read, or the time is over.
  /// Throws Unavailable where the connection is lost.
  bool wait_for_notification(std::chrono::milliseconds longest, int wake);

 private:
  friend class PostgresStatement;
  PreparedStatement& prepared(const std::string& sql) override;
  void require_fit();
  /// Takes the result. Throws what it says.
  std::shared_ptr<pg_result> checked(pg_result* result, std::string_view doing);

  std::unique_ptr<pg_conn, void (*)(pg_conn*)> connection_;
  std::unordered_map<std::string, std::unique_ptr<PostgresStatement>> statements_;
  std::uint64_t prepared_count_ = 0;
  std::int64_t changes_ = 0;
};

/// The text with its parameters as PostgreSQL numbers them: each `?` is the next one, `?2` is `$2`.
std::string numbered_parameters(std::string_view sql);

}  // namespace cubind::store
