#include "connect/address.hpp"

#include <catch2/catch.hpp>

#include "tests/support/refusal_of.hpp"

namespace cubind {
namespace {

using Catch::Matchers::Contains;

std::string refusal(const std::string& address) {
  return test::message_of([&] { check_address(address); });
}

TEST_CASE("an address that gRPC would choke on is refused with what would be right") {
  const std::string longest = "unix:///" + std::string(106, 'x');
  CHECK(refusal(longest).empty());
  CHECK(refusal("localhost:7600").empty());
  CHECK_THAT(refusal(longest + "x"), Contains("the path has 108 bytes, a socket's at most 107"));
  CHECK_THAT(refusal("http://localhost:7600"), Contains("is a web address") && Contains("tls://host:port"));
  CHECK(refusal("tls://gpu7:7600").empty());
  CHECK_THAT(refusal("localhost"), Contains("neither unix:///path/to/socket nor host:port"));
  CHECK_THAT(refusal("unix://"), Contains("neither unix:///path/to/socket nor host:port"));
  CHECK(refusal("localhost:65535").empty());
  for (const std::string port : {"65536", "99999999999999999999", "0"}) {
    CHECK_THAT(refusal("localhost:" + port), Contains("a port is 1 to 65535"));
  }
}

}  // namespace
}  // namespace cubind
