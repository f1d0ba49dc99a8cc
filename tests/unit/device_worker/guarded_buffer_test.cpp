// Where a buffer lies in its allocations.
#include "tuner/worker/guarded_buffer.hpp"

#include <catch2/catch.hpp>

#include "tests/unit/device_worker/host_driver.hpp"
#include "tuner/verify/setup_memory.hpp"

namespace cubind::worker {
namespace {

constexpr std::uint64_t kMebibyte = std::uint64_t{1} << 20;

struct BufferOnHost {
  BufferOnHost(std::uint64_t bytes, v1::Role role)
      : context("", test::make_host_driver()), budget(context.api(), 256 * kMebibyte) {
    v1::BufferSpec spec;
    spec.set_name("x");
    spec.set_type("u8");
    spec.set_role(role);
    spec.set_elements(bytes);
    spec.set_align_bytes(16);
    buffer.emplace(budget, spec, DType::U8, 0);
  }
  std::uint64_t before() const { return buffer->front_zone().address; }
  std::uint64_t end() const { return buffer->back_zone().address + verify::kRedZoneBytes; }

  DriverContext context;
  MemoryBudget budget;
  std::optional<GuardedBuffer> buffer;
};

TEST_CASE("a large buffer and its red zones stay inside its allocation at each placement") {
  BufferOnHost host(kMebibyte, v1::IN);
  const cuda::DevicePtr allocation = host.buffer->address() - verify::lead_bytes(kMebibyte);
  for (const Placement placement : {Placement::Aligned, Placement::Minimal}) {
    host.buffer->move(placement);
    CHECK(host.before() >= allocation);
    CHECK(host.end() <= allocation + verify::guarded_bytes(kMebibyte));
    CHECK(host.before() + verify::kRedZoneBytes == host.buffer->address());
  }
}

TEST_CASE("further slots have memory of their own and are counted round and round") {
  const std::uint64_t bytes = GENERATE(as<std::uint64_t>(), kMebibyte, 5000);
  BufferOnHost host(bytes, v1::IN);
  const cuda::DevicePtr first = host.buffer->address();
  host.buffer->set_further_slots(host.budget, 2);
  std::vector<cuda::DevicePtr> addresses;
  for (const std::uint32_t slot : {0u, 1u, 2u}) {
    host.buffer->move(Placement::Aligned, slot);
    addresses.push_back(host.buffer->address());
    CHECK(host.buffer->has_zones() == (slot == 0));
  }
  CHECK(addresses.front() == first);
  std::ranges::sort(addresses);
  CHECK(addresses[0] + bytes <= addresses[1]);
  CHECK(addresses[1] + bytes <= addresses[2]);
  host.buffer->move(Placement::Aligned, 3);
  CHECK(host.buffer->address() == first);
}

TEST_CASE("slots that are given back free their memory") {
  BufferOnHost host(kMebibyte, v1::IN);
  const std::uint64_t taken = host.budget.taken_bytes();
  host.buffer->set_further_slots(host.budget, 3);
  CHECK(host.budget.taken_bytes() == taken + 3 * kMebibyte);
  host.buffer->set_further_slots(host.budget, 2);
  CHECK(host.budget.taken_bytes() == taken + 2 * kMebibyte);
  host.buffer->set_further_slots(host.budget, 0);
  CHECK(host.budget.taken_bytes() == taken);
}

TEST_CASE("the slots of a small buffer share an allocation") {
  constexpr std::uint64_t kSmall = 8192;
  BufferOnHost host(kSmall, v1::IN);
  const std::uint64_t taken = host.budget.taken_bytes();
  host.buffer->set_further_slots(host.budget, 250);
  CHECK(host.budget.taken_bytes() == taken + 250 * verify::further_slot_bytes(kSmall));
  host.buffer->move(Placement::Aligned, 1);
  const cuda::DevicePtr first = host.buffer->address();
  host.buffer->move(Placement::Aligned, 250);
  CHECK(host.buffer->address() == first + 249 * verify::further_slot_bytes(kSmall));
}

TEST_CASE("scratch that shrinks below a large buffer lies behind its red zone alone again") {
  BufferOnHost host(0, v1::SCRATCH);
  host.buffer->fit(host.budget, 2 * kMebibyte);
  const cuda::DevicePtr large = host.buffer->address();
  host.buffer->fit(host.budget, 64 << 10);
  CHECK(large - host.buffer->address() == verify::lead_bytes(2 * kMebibyte) - verify::kRedZoneBytes);
  CHECK(host.buffer->back_zone().address == host.buffer->address() + (64 << 10));
}

}  // namespace
}  // namespace cubind::worker
