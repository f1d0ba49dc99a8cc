#include "base/loopback.hpp"

#include <catch2/catch.hpp>

#include "tests/support/refusal_of.hpp"

namespace cubind::test {

using Catch::Contains;

TEST_CASE("a port alone is one of 127.0.0.1") {
  CHECK(loopback_address("--web", "7680") == "127.0.0.1:7680");
  CHECK(loopback_address("--web", "localhost:7680") == "127.0.0.1:7680");
  CHECK(loopback_address("--web", "[::1]:0") == "[::1]:0");
}

TEST_CASE("an address that others reach is refused") {
  for (const char* given : {"0.0.0.0:7680", ":7680", "gpu7:7680", "127.0.0.1.evil:1", "127.0.0.1:65536",
                            "127.0.0.1:", "x", "1,2"}) {
    CHECK_THAT(refusal_of([&] { loopback_address("--web", given); }),
               Contains("--web " + std::string(given)));
  }
}

TEST_CASE("the host of a request is of the loopback with and without a port") {
  CHECK((is_loopback("localhost") && is_loopback("[::1]") && is_loopback("[::1]:80") &&
         is_loopback("127.0.0.1:7680")));
  CHECK_FALSE((is_loopback("evil.example:7680") || is_loopback("localhost.evil.example") || is_loopback("")));
}

}  // namespace cubind::test
