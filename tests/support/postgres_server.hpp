// A real server of PostgreSQL for tests.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "base/subprocess.hpp"

namespace cubind::test {

/// Listens on a socket in a folder of its own, and ends with this object. As root it runs as the user
/// `postgres`, whom Debian's package makes.
class PostgresServer {
 public:
  PostgresServer();
  ~PostgresServer();
  PostgresServer(const PostgresServer&) = delete;
  PostgresServer& operator=(const PostgresServer&) = delete;

  void start();
  void wait_until_ready();
  void stop();
  /// As a power loss would end it.
  void kill();

  /// A new, empty database; its URL. `clauses`: further ones of CREATE DATABASE.
  std::string create_database(const std::string& clauses = "");
  /// SQL in a session of its own.
  void execute(const std::string& url, const std::string& sql);
  /// What a query of one row and column gives.
  std::string ask(const std::string& url, const std::string& sql);

 private:
  /// A copy of the one that initdb made for the first test of this build: initdb takes seconds.
  void make_cluster() const;
  Subprocess spawn(const std::string& program, std::vector<std::string> arguments) const;
  void run(const std::string& program, std::vector<std::string> arguments) const;
  std::string url_of(const std::string& database) const;

  TempDir folder_;
  std::optional<Subprocess> server_;
  int databases_ = 0;
};

}  // namespace cubind::test
