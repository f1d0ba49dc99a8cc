// SQLite as a driver of the store.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/error.hpp"
#include "server/store/connection.hpp"

struct sqlite3;
struct sqlite3_stmt;

namespace cubind::store {

/// A result code of SQLite as cubind's fault. Full and failing disks are told apart from corruption: only
/// corruption may ever cost a file.
Error sqlite_error(sqlite3* connection, int code, std::string_view doing);

/// A statement that SQLite has prepared.
class SqliteStatement final : public PreparedStatement {
 public:
  SqliteStatement(sqlite3* connection, const std::string& sql);
  ~SqliteStatement() override;
  SqliteStatement(const SqliteStatement&) = delete;
  SqliteStatement& operator=(const SqliteStatement&) = delete;

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
  void check(int code);

  sqlite3* connection_;
  sqlite3_stmt* statement_ = nullptr;
};

class Database final : public Connection {
 public:
  enum class Mode { Create, ReadOnly };
  Database(const std::filesystem::path& path, Mode mode);
  ~Database() override;

  /// A statement's wait for another process's lock; 5 s at first.
  void set_patience(std::chrono::milliseconds patience);

  void execute(const std::string& sql) override;
  std::int64_t changes() const override;
  void transaction(Access access, const std::function<void()>& body) override;
  Dialect dialect() const override { return Dialect::Sqlite; }
  bool is_usable() const override { return true; }
  /// Copies all of one committed state into the database file `to`; writers of this one go on.
  void copy_to(const std::filesystem::path& to);

 private:
  PreparedStatement& prepared(const std::string& sql) override;

  sqlite3* connection_ = nullptr;
  std::unordered_map<std::string, std::unique_ptr<SqliteStatement>> statements_;
};

}  // namespace cubind::store
