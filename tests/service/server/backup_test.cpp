// Backup: a store copied from a daemon that serves it, and ids of requests.
#include <catch2/catch.hpp>

#include <future>

#include "base/file.hpp"
#include "client/connection.hpp"
#include "server/store/sqlite/store_check.hpp"
#include "server/store/store.hpp"
#include "tests/service/server/daemon_fixture.hpp"

namespace cubind::test {
namespace {

TEST_CASE("a backup taken while the daemon serves is a sound store that answers the same") {
  TunedDaemon daemon;
  const Got before = daemon.get(vector_add(4096));
  REQUIRE(before.status.ok());
  std::string copy;
  const std::uint64_t bytes =
      Connection(daemon.address()).backup([&](std::string_view data) { copy += data; }, std::nullopt);
  CHECK(bytes == copy.size());
  daemon.restart([&] {
    for (const char* suffix : {"", "-wal", "-shm"}) {
      std::filesystem::remove(daemon.config().database.string() + suffix);
    }
    write_file_atomic(daemon.config().database, copy, 0600);
    CHECK(check_store(daemon.config().database).damage.empty());
  });
  const Got after = daemon.get(vector_add(4096));
  REQUIRE(after.status.ok());
  CHECK(after.reply.artifact().digest() == before.reply.artifact().digest());
}

TEST_CASE("several backups at once are each whole") {
  TunedDaemon daemon;
  const auto take = [&] {
    std::string copy;
    Connection(daemon.address()).backup([&](std::string_view data) { copy += data; }, std::nullopt);
    return copy;
  };
  auto other = std::async(std::launch::async, take);
  const std::string one = take();
  CHECK(one.size() == other.get().size());
  CHECK(one.starts_with("SQLite format 3"));
}

}  // namespace
}  // namespace cubind::test
