#include "server/listener.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <catch2/catch.hpp>
#include <thread>

#include "base/file.hpp"

namespace cubind::test {
namespace {

TEST_CASE("a socket is its user's alone from the moment in which it is bound") {
  const TempDir folder;
  const std::string path = (folder.path() / "s").string();
  const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  const mode_t before = ::umask(0);
  {
    const PrivateBind bind;
    REQUIRE(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0);
  }
  CHECK(::umask(before) == 0);
  struct stat info {};
  REQUIRE(::stat(path.c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0600);
}

TEST_CASE("a server that accepts a connection and says nothing is no server that answers") {
  const TempDir folder;
  const SocketFile socket(folder.path() / "s");
  const UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  (folder.path() / "s").string().copy(address.sun_path, sizeof(address.sun_path) - 1);
  REQUIRE(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0);
  REQUIRE(::listen(listener.get(), 16) == 0);
  CHECK_THROWS_WITH(socket.require_answer(std::chrono::milliseconds(50)),
                    Catch::Contains(socket.address()) && Catch::Contains("answers nothing"));
  const UniqueFd silent(::accept(listener.get(), nullptr, nullptr));
  const std::jthread answer([&] {
    const UniqueFd connection(::accept(listener.get(), nullptr, nullptr));
    ::send(connection.get(), "x", 1, MSG_NOSIGNAL);
  });
  socket.require_answer(std::chrono::seconds(60));
}

}  // namespace
}  // namespace cubind::test
