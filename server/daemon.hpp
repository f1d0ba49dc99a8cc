// A daemon: store, index, job queue, services, local agent, wired together.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "server/config.hpp"

namespace cubind {

struct ServiceContext;

/// Not thread-safe itself: one thread starts and stops it.
class Daemon {
 public:
  /// Opens the store. Throws the first error.
  explicit Daemon(const Config& config);
  /// stop(), if that has not been called.
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  /// Reads specs and shipped tables, listens and starts the local agent. Throws the first error.
  void start();

  /// "unix:///run/user/1000/cubind/cubind.sock"
  const std::string& address() const;

  /// Of --listen; 0: there is none.
  int port() const;
  /// Of the metrics; 0: they are off.
  int metrics_port() const;

  /// Takes no new work, has agents hand back their leases (at most 5 s), ends the local agent and the open
  /// calls.
  void stop();

  /// For tests in this process.
  ServiceContext& context();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace cubind
