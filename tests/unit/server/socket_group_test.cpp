#include "server/access/socket_group.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include <array>

#include "base/error.hpp"
#include "base/unique_fd.hpp"

namespace cubind {
namespace {

using Catch::Matchers::Contains;

std::string refusal(const std::string& text) {
  try {
    parse_socket_group(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("a socket's group has the role of a reader unless it is given that of a tuner") {
  CHECK(parse_socket_group("root").id == 0);
  CHECK(parse_socket_group("root").role == CallerRole::Reader);
  CHECK(parse_socket_group("root:tuner").role == CallerRole::Tuner);
  CHECK_THAT(refusal("root:admin"), Contains("--socket-group root:admin") && Contains("reader or tuner"));
  CHECK_THAT(refusal("no-such-group"), Contains("no group \"no-such-group\" exists"));
}

TEST_CASE("the kernel names the user and the groups of a socket's peer") {
  std::array<int, 2> ends{};
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
  const UniqueFd one(ends[0]), other(ends[1]);
  const auto peer = peer_of_socket(one.get());
  REQUIRE(peer);
  CHECK(peer->user == ::geteuid());
  CHECK(peer->is_in(::getegid()));
  CHECK_FALSE(peer->is_in(4242424));
}

}  // namespace
}  // namespace cubind
