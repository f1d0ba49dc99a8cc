#include "client/connection_faults.hpp"

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
}

TEST_CASE("a call that is too large is no other service's answer") {
  const grpc::ClientContext call;
  const grpc::Status refused(grpc::StatusCode::RESOURCE_EXHAUSTED,
                             "SERVER: Received message larger than max (5 vs. 4)");
  CHECK_THAT(error_of(refused, call, "unix:///d").what(), Contains("is too large (SERVER: Received message"));
  const grpc::Status other(grpc::StatusCode::RESOURCE_EXHAUSTED, "busy");
  CHECK_THAT(error_of(other, call, "unix:///d").what(), Contains("another service"));
}

}  // namespace
}  // namespace cubind
