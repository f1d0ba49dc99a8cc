#include <catch2/catch.hpp>

#include "tests/support/allocation_count.hpp"
#include "tests/unit/client/bound_sample.hpp"

namespace cubind::test {

TEST_CASE("a launch allocates nothing") {
  const BoundKernel kernel = bound_sample();
  const std::optional<PreparedLaunch> prepared = kernel.prepare(BoundDims{1000, 4096});
  const BoundValues given = bound_values();
  recorded().launching = false;
  const std::size_t before = allocation_count();
  for (std::int64_t n = 400; n < 1024; ++n) {
    kernel.launch(BoundDims{n, 4096}, given, nullptr);
  }
  prepared->launch(given, nullptr);
  const std::size_t after = allocation_count();
  recorded().launching = true;
  CHECK(after == before);
}

}  // namespace cubind::test
