// Several daemons on one database, with what befalls them.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "tests/support/postgres_server.hpp"
#include "tests/support/tiny_daemon.hpp"

namespace cubind::test {

struct SeveralDaemons {
  /// Each has a replay device of the same class, which plays these problems.
  SeveralDaemons(std::vector<Problem> problems, int pace_us);

  void start_database() { server.start(); }
  /// A row of the only column of a query.
  std::string ask(const std::string& sql);
  /// From now on the database notes each sample that is stored by a daemon that does not have its job.
  void note_stale_writes();
  std::vector<std::string> acknowledged_blocks() const;
  std::vector<std::string> measured_blocks() const;

  const std::vector<Problem> problems;
  PostgresServer server;
  const std::string url = server.create_database();
  std::vector<std::unique_ptr<TinyDaemon>> daemons;
};

/// `count` problems, no two of one bucket; every twentieth has a constant of its own to compile in.
std::vector<Problem> cold_problems(std::size_t count);

/// So many connections, each to one of three daemons, ask for the problems in turn and wait: each problem has
/// one job, and all who ask for it get the same bytes.
void check_cold_keys(std::size_t problems, std::size_t connections);

struct Blows {
  std::size_t kills = 0;     // of a daemon
  std::size_t restarts = 0;  // of the database's server, every second one as by a power loss
  std::chrono::milliseconds cut_off{0};
};

/// While callers ask, daemons are killed at random and the database is restarted and taken away. Afterwards
/// every problem has its record, what was acknowledged is stored once, no sample was measured after it had
/// been acknowledged, and no daemon has stored any for a job of another.
void check_blows(std::size_t problems, const Blows& blows, std::uint64_t seed);

}  // namespace cubind::test
