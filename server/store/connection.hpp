// One connection to a database with its prepared statements: what a driver implements, and the typed
// statement that the queries use. Used within server/store only; not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "base/digest.hpp"
#include "base/error.hpp"
#include "server/store/dialect.hpp"

namespace cubind::store {

/// Bytes that are no text.
struct RawBytes {
  std::string bytes;
  bool operator==(const RawBytes&) const = default;
};
/// Of any column; no value: null.
using Value = std::variant<std::monostate, std::int64_t, double, std::string, RawBytes>;

enum class ValueKind : std::uint8_t { Null, Integer, Real, Text, Bytes };

/// One prepared statement of a driver. Parameters and columns are counted from 0.
class PreparedStatement {
 public:
  virtual ~PreparedStatement() = default;

  /// Bytes are not copied: they must outlive the run.
  virtual void bind_null(int parameter) = 0;
  virtual void bind_integer(int parameter, std::int64_t value) = 0;
  virtual void bind_real(int parameter, double value) = 0;
  virtual void bind_text(int parameter, std::string_view text) = 0;
  virtual void bind_blob(int parameter, std::string_view bytes) = 0;
  /// The next row. False: there is none.
  virtual bool step() = 0;
  /// Ends the run and drops what is bound.
  virtual void reset() noexcept = 0;

  virtual bool is_null(int column) = 0;
  virtual ValueKind kind(int column) = 0;
  virtual std::int64_t integer(int column) = 0;
  virtual double real(int column) = 0;
  /// Both give a number in decimal.
  virtual std::string_view text(int column) = 0;
  virtual std::string_view blob(int column) = 0;
  virtual std::string column_name(int column) = 0;
};

/// Whether a parameter of this type holds the bytes itself.
template <typename Parameter>
inline constexpr bool kOwnsBytes = false;
template <>
inline constexpr bool kOwnsBytes<std::string> = true;
template <>
inline constexpr bool kOwnsBytes<RawBytes> = true;
template <>
inline constexpr bool kOwnsBytes<Digest> = true;
template <>
inline constexpr bool kOwnsBytes<Value> = true;
template <typename Held>
inline constexpr bool kOwnsBytes<std::optional<Held>> = kOwnsBytes<Held>;

/// One run of a prepared statement: bind in order, step, read the columns of a row in order. Resets on
/// destruction.
class Statement {
 public:
  explicit Statement(PreparedStatement& prepared) : prepared_(prepared) {}
  ~Statement() { prepared_.reset(); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  /// Bytes are not copied: text, blobs and digests must outlive the query, so that a temporary is refused.
  template <typename... Values>
  Statement& bind(Values&&... values) {
    static_assert((!(std::is_rvalue_reference_v<Values&&> && kOwnsBytes<std::remove_cvref_t<Values>>)&&...),
                  "the bytes of a temporary are gone before the query runs");
    (put(values), ...);
    return *this;
  }

  bool step();
  /// Runs a statement without rows.
  void run();

  std::int64_t integer() { return prepared_.integer(next_column_++); }
  std::uint64_t unsigned_integer() { return static_cast<std::uint64_t>(integer()); }
  std::uint32_t word() { return static_cast<std::uint32_t>(integer()); }
  bool flag() { return integer() != 0; }
  /// Throws DataLoss where it is not finite.
  double real();
  /// Throws DataLoss where it is not in UTF-8.
  std::string text();
  std::string blob() { return std::string(prepared_.blob(next_column_++)); }
  /// Throws DataLoss where it has not 32 bytes.
  Digest digest();
  std::optional<std::string> optional_blob();
  std::optional<std::uint64_t> optional_unsigned();
  Value value();
  std::vector<Value> values(std::size_t count);

  bool has_value() { return !prepared_.is_null(next_column_); }

  /// What names the row: its first columns, numbers, texts or digests.
  std::string row_name(std::size_t columns = 1);
  /// The column that was read last.
  std::string column() const { return prepared_.column_name(next_column_ - 1); }

  struct Bytes {
    std::string_view bytes;
  };
  /// Binds as a blob.
  static Bytes bytes(std::string_view view) { return {view}; }

 private:
  void put(std::int64_t value) { prepared_.bind_integer(next_parameter_++, value); }
  void put(std::uint64_t value) { put(static_cast<std::int64_t>(value)); }
  void put(std::uint32_t value) { put(static_cast<std::int64_t>(value)); }
  void put(int value) { put(static_cast<std::int64_t>(value)); }
  void put(bool value) { put(static_cast<std::int64_t>(value)); }
  void put(double value) { prepared_.bind_real(next_parameter_++, value); }
  void put(std::string_view text) { prepared_.bind_text(next_parameter_++, text); }
  void put(const std::string& text) { put(std::string_view(text)); }
  void put(const char* text) { put(std::string_view(text)); }
  void put(std::monostate) { prepared_.bind_null(next_parameter_++); }
  void put(const RawBytes& raw) { put(Bytes{raw.bytes}); }
  void put(const Value& value) {
    std::visit([this](const auto& one) { put(one); }, value);
  }
  void put(Bytes bytes) { prepared_.bind_blob(next_parameter_++, bytes.bytes); }
  void put(const Digest& digest) { put(Bytes{digest.view()}); }
  template <typename Value>
  void put(const std::optional<Value>& value) {
    if (value) {
      put(*value);
    } else {
      prepared_.bind_null(next_parameter_++);
    }
  }
  /// Steps over the column if it is null.
  bool skip_null();

  PreparedStatement& prepared_;
  int next_parameter_ = 0;
  int next_column_ = 0;
};

enum class Access : std::uint8_t { Read, Write };

class Connection {
 public:
  Connection() = default;
  virtual ~Connection() = default;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Prepared once per text. Its result is used before the next query of the same text.
  Statement query(const std::string& sql) { return Statement(prepared(sql)); }
  Statement query(const DialectText& sql) { return query(sql.in(dialect())); }
  /// One or more statements without results.
  virtual void execute(const std::string& sql) = 0;
  /// Rows that the last INSERT, UPDATE or DELETE changed.
  virtual std::int64_t changes() const = 0;
  /// Runs `body` in one transaction, in which all reads see one committed state; on any exception nothing of
  /// it stays.
  virtual void transaction(Access access, const std::function<void()>& body) = 0;
  virtual Dialect dialect() const = 0;
  /// False: it is lost, and only to be closed.
  virtual bool is_usable() const = 0;

 private:
  virtual PreparedStatement& prepared(const std::string& sql) = 0;
};

}  // namespace cubind::store
