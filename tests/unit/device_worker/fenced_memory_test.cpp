#include "tuner/worker/fenced_memory.hpp"

#include <catch2/catch.hpp>

#include <cstring>

#include "base/rounding.hpp"
#include "tests/unit/device_worker/host_driver.hpp"
#include "tuner/worker/driver_context.hpp"

namespace cubind::worker {
namespace {

using test::kGranularity;

struct MemoryOnHost {
  DriverContext context{"", test::make_host_driver()};
  MemoryBudget budget{context.api(), 16 * kGranularity};
};

TEST_CASE("the bytes end with their mapping, but for what their alignment needs") {
  MemoryOnHost host;
  const std::uint64_t bytes = GENERATE(as<std::uint64_t>(), 1, 4096, 5003, kGranularity, kGranularity + 16);
  {
    const FencedMemory memory(host.budget, bytes, 16);
    CHECK(memory.address() % 16 == 0);
    const auto [end, reserved] = test::last_mapping_ends();
    CHECK(memory.address() + rounded_up<std::uint64_t>(bytes, 16) == end);
    CHECK(reserved == end + kGranularity);
    std::memset(reinterpret_cast<void*>(memory.address()), 1, bytes);  // NOLINT: the host's memory
    CHECK(host.budget.taken_bytes() % kGranularity == 0);
    CHECK(host.budget.taken_bytes() >= bytes);
  }
  CHECK(host.budget.taken_bytes() == 0);
}

TEST_CASE("a driver that has no such memory is like one without room, and keeps nothing") {
  MemoryOnHost host;
  test::limit_allocations(0);
  CHECK_FALSE(allocates([&] { const FencedMemory memory(host.budget, 5000, 16); }));
  CHECK(host.budget.taken_bytes() == 0);
}

}  // namespace
}  // namespace cubind::worker
