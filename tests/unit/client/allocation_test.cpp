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

TEST_CASE("a launch that copies the content of a variable allocates nothing") {
  const BoundKernel kernel = bound_sample(rule_with_variables());
  const std::array<ArgumentValue, 5> given = {cuda::DevicePtr{0x1000}, cuda::DevicePtr{0x2000}, 0.5,
                                              cuda::DevicePtr{0x4000}, cuda::DevicePtr{0x3000}};
  recorded().launching = false;
  kernel.launch(BoundDims{1024, 4096}, given, nullptr);  // has shared memory granted
  const std::size_t before = allocation_count();
  kernel.launch(BoundDims{1000, 4096}, given, nullptr);
  const std::size_t after = allocation_count();
  recorded().launching = true;
  CHECK(after == before);
}

TEST_CASE("a prepared launch whose tensor maps stay allocates nothing") {
  const auto prepared = bound_sample(rule_with_tensor_maps()).prepare(BoundDims{1000, 4096}).value();
  const BoundValues given = bound_values();
  recorded().launching = false;
  prepared.launch(given, nullptr);  // encodes them
  const std::size_t before = allocation_count();
  prepared.launch(given, nullptr);
  const std::size_t after = allocation_count();
  recorded().launching = true;
  CHECK(after == before);
}

}  // namespace cubind::test
