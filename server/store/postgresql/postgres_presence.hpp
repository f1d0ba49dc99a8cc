// This daemon among those that use one database of PostgreSQL.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/unique_fd.hpp"
#include "server/store/peers.hpp"
#include "server/store/postgresql/postgres_connection.hpp"

namespace cubind::store {

/// Keeps a row in the table daemons alive, and listens for what the others commit, on a connection and a
/// thread of its own.
class PostgresPresence final : public Peers {
 public:
  using Connect = std::function<std::unique_ptr<PostgresConnection>()>;

  /// Enters the row before it returns. `id`: 16 bytes.
  PostgresPresence(std::string id, std::string name, Connect connect);
  /// Removes the row where the database can be reached.
  ~PostgresPresence() override;

  const std::string& self() const override { return id_; }
  std::vector<Peer> alive() const override;
  bool is_gone(const std::string& id) const override;
  void offer(const Offer& offer) override;
  void follow(std::function<void()> changed) override;
  std::uint64_t interruptions() const override { return interruptions_; }
  void note_interruption() { ++interruptions_; }

 private:
  using Time = std::chrono::steady_clock::time_point;

  void run();
  void connect_again();
  /// Renews the row and reads those of the others.
  void beat();
  void tell();
  void wake() const;
  bool is_stopping() const;

  const std::string id_, name_;
  const Connect connect_;
  const UniqueFd wake_;
  std::atomic<std::uint64_t> interruptions_{0};
  std::unique_ptr<PostgresConnection> connection_;  // of the thread; null: it is lost

  mutable std::mutex mutex_;
  std::vector<Peer> alive_;  // guarded by mutex_
  Offer offer_;              // guarded by mutex_
  Time trusted_from_{};      // guarded by mutex_
  bool stopping_ = false;    // guarded by mutex_

  std::mutex telling_;
  std::function<void()> changed_;  // guarded by telling_
  std::thread thread_;
};

}  // namespace cubind::store
