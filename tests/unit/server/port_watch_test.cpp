#include "server/port_watch.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <vector>

#include "base/file.hpp"
#include "base/unique_fd.hpp"

namespace cubind::test {
namespace {

using std::chrono::milliseconds;

/// A socket that the kernel queues connections for.
struct Listener {
  TempDir folder;
  std::filesystem::path path = folder.path() / "s";
  UniqueFd socket{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};

  Listener() {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.string().copy(address.sun_path, sizeof(address.sun_path) - 1);
    REQUIRE(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0);
    REQUIRE(::listen(socket.get(), 16) == 0);
  }
  PortWatchOptions options() const { return {path, milliseconds(1), milliseconds(20), 3}; }
};

bool becomes_true(const std::atomic<bool>& flag) {
  for (int i = 0; i < 1000 && !flag; ++i) {
    std::this_thread::sleep_for(milliseconds(10));
  }
  return flag;
}

TEST_CASE("a listener that accepts no connection any more is found") {
  const Listener listener;
  std::atomic<bool> deaf{false};
  const PortWatch watch(listener.options(), [&] { deaf = true; });
  CHECK(becomes_true(deaf));
}

TEST_CASE("a listener that answers is left alone") {
  const Listener listener;
  std::atomic<bool> deaf{false};
  PortWatchOptions options = listener.options();
  options.patience = std::chrono::seconds(20);
  const PortWatch watch(options, [&] { deaf = true; });
  std::vector<UniqueFd> connections;  // open to the end: one that is closed at once may be taken for silent
  for (int i = 0; i < 10; ++i) {
    pollfd wait{listener.socket.get(), POLLIN, 0};
    REQUIRE(::poll(&wait, 1, 20'000) == 1);
    connections.emplace_back(::accept(listener.socket.get(), nullptr, nullptr));
    REQUIRE(::send(connections.back().get(), "x", 1, MSG_NOSIGNAL) == 1);
  }
  CHECK_FALSE(deaf);
}

}  // namespace
}  // namespace cubind::test
