// One SQLite connection with its prepared statements. Used within server/store only; not thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/digest.hpp"
#include "base/error.hpp"

struct sqlite3;
struct sqlite3_stmt;

namespace cubind::store {

/// A result code of SQLite as cubind's fault. Full and failing disks are told apart from corruption: only
/// corruption may ever cost a file.
Error sqlite_error(sqlite3* connection, int code, std::string_view doing);

/// One run of a prepared statement: bind in order, step, read the columns of a row in order. Resets on
/// destruction.
class Statement {
 public:
  Statement(sqlite3* connection, sqlite3_stmt* statement) : connection_(connection), statement_(statement) {}
  ~Statement();
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  /// Bytes are not copied: text, blobs and digests must outlive the query.
  template <typename... Values>
  Statement& bind(const Values&... values) {
    (put(values), ...);
    return *this;
  }

  bool step();
  /// Runs a statement without rows.
  void run();

  std::int64_t integer();
  std::uint64_t unsigned_integer() { return static_cast<std::uint64_t>(integer()); }
  std::uint32_t word() { return static_cast<std::uint32_t>(integer()); }
  bool flag() { return integer() != 0; }
  /// Throws DataLoss where it is not finite.
  double real();
  /// Throws DataLoss where it is not in UTF-8.
  std::string text();
  std::string blob();
  /// Throws DataLoss where it has not 32 bytes.
  Digest digest();
  std::optional<Digest> optional_digest();
  std::optional<std::uint64_t> optional_unsigned();

  /// What names the row: its first column, a number, a text or a digest.
  std::string row_name();
  /// The column that was read last.
  std::string column() const;

 private:
  void put(std::int64_t value);
  void put(std::uint64_t value) { put(static_cast<std::int64_t>(value)); }
  void put(std::uint32_t value) { put(static_cast<std::int64_t>(value)); }
  void put(int value) { put(static_cast<std::int64_t>(value)); }
  void put(bool value) { put(static_cast<std::int64_t>(value)); }
  void put(double value);
  void put(std::string_view text);
  void put(const std::string& text) { put(std::string_view(text)); }
  void put(const char* text) { put(std::string_view(text)); }
  void put(const Digest& digest);
  void put(const std::optional<Digest>& digest);
  struct Bytes {
    std::string_view bytes;
  };
  void put(Bytes bytes);
  void check(int code);

 public:
  /// Binds as a blob.
  static Bytes bytes(std::string_view view) { return {view}; }

 private:
  sqlite3* connection_;
  sqlite3_stmt* statement_;
  int next_parameter_ = 1;
  int next_column_ = 0;
};

class Database {
 public:
  enum class Mode { Create, ReadOnly };
  Database(const std::filesystem::path& path, Mode mode);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  /// A statement's wait for another process's lock; 5 s at first.
  void set_patience(std::chrono::milliseconds patience);

  /// Prepared once per text. Its result is used before the next query of the same text.
  Statement query(const std::string& sql);
  /// One or more statements without results.
  void execute(const std::string& sql);
  std::int64_t changes() const;
  /// Runs `body` between `begin` and COMMIT; on any exception nothing of it stays.
  void transaction(const std::string& begin, const std::function<void()>& body);

 private:
  sqlite3* connection_ = nullptr;
  std::unordered_map<std::string, sqlite3_stmt*> statements_;
};

}  // namespace cubind::store
