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
#include "server/store/postgresql/postgres_presence.hpp"

namespace cubind::store {

struct PostgresOptions {
  std::string url;                            // postgresql://, without a password
  std::string address;                        // of the daemon, for the others
  std::chrono::milliseconds settling{10000};  // for the answer to a COMMIT whose connection was lost
};

/// Daemons share a database. All of them write one after the other, by an advisory lock that each transaction
/// takes: what StoreWriter reads stays as it is until it has written. A lost connection makes the call that
/// needs it fail with Unavailable, and is made again for the next one.
class PostgresEngine final : public Engine {
 public:
  /// Makes a new database a store. Throws Unavailable where the server cannot be reached, and
  /// FailedPrecondition where the database is of no use for a store, or another version of cubind made it.
  PostgresEngine(PostgresOptions options, DamagedRows& damaged);

  std::string location() const override { return options_.url; }
  std::unique_ptr<Connection> connect_reader() override;
  /// Throws FailedPrecondition: PostgreSQL has its own means.
  UniqueFd snapshot() const override;
  void write(const std::function<void(StoreWriter&)>& body) override;
  void probe() override;
  void set_read_only(bool) override {}
  Peers* peers() override { return presence_.get(); }

 private:
  /// Throws at once what the last attempt has met, for a while after it.
  std::unique_ptr<PostgresConnection> connect();
  /// Any thread.
  std::unique_ptr<PostgresConnection> try_to_connect();
  void set_up();
  void create_store();
  static void redraw_if_restored(PostgresConnection& connection);
  /// The writing connection, made again where it was lost.
  PostgresConnection& writing();
  /// Of this engine's transactions. Absent: it was away for days, and forgotten.
  std::optional<std::uint64_t> last_commit(PostgresConnection& connection);
  void enter_again(PostgresConnection& connection);
  void run(const std::function<void(StoreWriter&)>& body);
  /// Whether the transaction with that number was committed; absent: the server cannot be asked in time.
  std::optional<bool> is_committed(std::uint64_t number);
  void settle(std::uint64_t number, const Error& lost);

  const PostgresOptions options_;
  const std::string name_;
  DamagedRows& damaged_;

  std::mutex attempt_;  // held by the one of connect() that tries; taken before mutex_
  std::mutex mutex_;
  std::chrono::steady_clock::time_point next_attempt_{};  // guarded by mutex_
  std::optional<Error> last_failure_;                     // guarded by mutex_

  // Used by the constructor and the writer thread. connect() needs what stands before:
  std::unique_ptr<PostgresConnection> connection_;
  // Each transaction stores its number (table commits) under this engine's own key.
  const std::string writer_;
  std::uint64_t committed_ = 0;
  std::unique_ptr<PostgresPresence> presence_;
};

}  // namespace cubind::store
