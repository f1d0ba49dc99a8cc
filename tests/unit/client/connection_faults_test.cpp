#include "client/connection_faults.hpp"

#include <catch2/catch.hpp>

namespace cubind {
namespace {

using Catch::Matchers::Contains;

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
