// A store in a database of PostgreSQL.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "server/store/damaged_rows.hpp"
#include "server/store/engine.hpp"
#include "server/store/postgresql/postgres_connection.hpp"

namespace cubind::store {

struct PostgresOptions {
  std::string url;                            // postgresql://, without a password
  std::string address;                        // of the daemon, for another one that wants the store
  std::chrono::milliseconds patience{2000};   // for another session's end, which has the store's lock
  std::chrono::milliseconds settling{10000};  // for the answer to a COMMIT whose connection was lost
};

/// One daemon at a time has the store, by an advisory lock of the session that writes. A lost connection
/// makes the call that needs it fail with Unavailable, and is made again for the next one.
class PostgresEngine final : public Engine {
 public:
  /// Takes the lock and brings the schema to today's. Throws Unavailable where the server cannot be reached,
  /// and FailedPrecondition where another daemon has the store or the database is of no use for one.
  PostgresEngine(PostgresOptions options, DamagedRows& damaged);

  std::string place() const override { return options_.url; }
  std::unique_ptr<Connection> connect_reader() override;
  /// Throws FailedPrecondition: PostgreSQL has its own means.
  UniqueFd snapshot() const override;
  void write(const std::function<void(StoreWriter&)>& body) override;
  void probe() override;
  void set_read_only(bool) override {}

 private:
  std::unique_ptr<PostgresConnection> connect();
  void lock(PostgresConnection& connection);
  void set_up();
  void redraw_if_restored();
  /// The writing connection, made again where it was lost.
  PostgresConnection& writing();
  /// Of this engine's transactions. Absent: another daemon has opened the store since.
  std::optional<std::uint64_t> last_commit(PostgresConnection& connection);
  void require_own_store(PostgresConnection& connection);
  /// Whether the transaction with that number was committed; absent: the server cannot be asked in time.
  std::optional<bool> is_committed(std::uint64_t number);
  void settle(std::uint64_t number, const Error& lost);

  const PostgresOptions options_;
  const std::string name_;
  DamagedRows& damaged_;

  std::mutex mutex_;
  std::chrono::steady_clock::time_point next_attempt_{};  // guarded by mutex_
  std::optional<Error> last_failure_;                     // guarded by mutex_

  // Used by the constructor and the writer thread. connect() needs what stands before:
  std::unique_ptr<PostgresConnection> connection_;
  // Each transaction stores its number (table commits) under this engine's own key.
  const std::string writer_;
  std::uint64_t committed_ = 0;
  std::optional<std::string> forsaken_;  // why this engine writes no more
};

}  // namespace cubind::store
