#include "server/access/socket_group.hpp"

#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "tests/support/refusal_of.hpp"

namespace cubind {
namespace {

using Catch::Matchers::Contains;

std::string refusal(const std::string& text) {
  return test::message_of([&] { parse_socket_group(text); });
}

TEST_CASE("a socket's group has the role of a reader unless it is given that of a tuner") {
  CHECK(parse_socket_group("root").id == 0);
  CHECK(parse_socket_group("root").role == CallerRole::Reader);
  CHECK(parse_socket_group("root:tuner").role == CallerRole::Tuner);
  CHECK_THAT(refusal("root:admin"), Contains("--socket-group root:admin") && Contains("reader or tuner"));
  CHECK_THAT(refusal("no-such-group"), Contains("no group \"no-such-group\" exists"));
}

}  // namespace
}  // namespace cubind
