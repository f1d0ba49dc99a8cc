#include "server/user_watch.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <atomic>
#include <catch2/catch.hpp>

#include "base/file.hpp"
#include "tests/support/eventually.hpp"

namespace cubind {
namespace {

using namespace std::chrono_literals;

UniqueFd locked(const std::filesystem::path& file, int how) {
  UniqueFd opened(::open(file.c_str(), O_RDWR | O_CREAT, 0600));
  REQUIRE(::flock(opened.get(), how) == 0);
  return opened;
}

}  // namespace

TEST_CASE("a daemon is unused when the last of its users has given its lock up") {
  const TempDir folder;
  const std::filesystem::path file = folder.path() / "users.lock";
  UniqueFd first = locked(file, LOCK_SH);
  UniqueFd second = locked(file, LOCK_SH);
  std::atomic<bool> unused = false;
  const UserWatch watch(file, 5ms, [&] { unused = true; });
  first.reset();
  std::this_thread::sleep_for(50ms);
  CHECK_FALSE(unused);
  second.reset();
  CHECK(test::eventually([&] { return unused.load(); }));
}

TEST_CASE("a new user waits for the end of a daemon that is ending") {
  const TempDir folder;
  const std::filesystem::path file = folder.path() / "users.lock";
  std::atomic<bool> unused = false;
  {
    const UserWatch watch(file, 5ms, [&] { unused = true; });
    REQUIRE(test::eventually([&] { return unused.load(); }));
    const UniqueFd user(::open(file.c_str(), O_RDWR));
    CHECK(::flock(user.get(), LOCK_SH | LOCK_NB) != 0);
  }
  const UniqueFd user(::open(file.c_str(), O_RDWR));
  CHECK(::flock(user.get(), LOCK_SH | LOCK_NB) == 0);
}

}  // namespace cubind
