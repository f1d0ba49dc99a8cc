// What a store needs of the database that it lies in: SQLite or PostgreSQL.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/unique_fd.hpp"
#include "server/store/connection.hpp"
#include "server/store/peers.hpp"
#include "server/store/store_writer.hpp"

namespace cubind::store {

/// The thread rule of each function stands with it. Errors of a database that takes no writes now have the
/// place "store" and are ResourceExhausted or Unavailable.
class Engine {
 public:
  Engine() = default;
  virtual ~Engine() = default;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Where the store lies, for people: a path, or a URL without a password. Any thread.
  virtual std::string location() const = 0;
  /// A new connection for reading. Any thread.
  virtual std::unique_ptr<Connection> connect_reader() = 0;
  /// A copy of one committed state (Store::snapshot). Any thread.
  virtual UniqueFd snapshot() const = 0;

  /// Runs `body` in one transaction. The writer thread.
  virtual void write(const std::function<void(StoreWriter&)>& body) = 0;
  /// Writes something and takes it back. The writer thread.
  virtual void probe() = 0;
  /// Whether the last write failed for the database's sake; writes are still tried. The writer thread.
  virtual void set_read_only(bool is_read_only) = 0;
  /// Null: no other daemon can use the database.
  virtual Peers* peers() { return nullptr; }
};

}  // namespace cubind::store
