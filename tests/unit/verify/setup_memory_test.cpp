#include "tuner/verify/setup_memory.hpp"

#include <catch2/catch.hpp>
#include <set>

#include "tuner/verify/red_zone.hpp"

namespace cubind::verify {
namespace {

constexpr std::uint64_t kGuard = 2 * kRedZoneBytes + kAllocatorAlignment;

v1::PrepareProblem one_buffer(v1::Role role, const std::string& reference = "kernel") {
  v1::PrepareProblem request;
  request.set_reference(reference);
  v1::BufferSpec& buffer = *request.add_buffers();
  buffer.set_name("x");
  buffer.set_type("f32");
  buffer.set_role(role);
  buffer.set_elements(1000);
  return request;
}

TEST_CASE("an input is allocated once between its red zones") {
  CHECK(setup_bytes(one_buffer(v1::IN)) == 4000 + kGuard);
}

TEST_CASE("what a variant writes is allocated once more for the reference") {
  CHECK(setup_bytes(one_buffer(v1::OUT)) == 2 * (4000 + kGuard));
  CHECK(setup_bytes(one_buffer(v1::SCRATCH)) == 2 * (4000 + kGuard));
}

TEST_CASE("an inout buffer is allocated a third time for what it holds before a launch") {
  CHECK(setup_bytes(one_buffer(v1::INOUT)) == 2 * (4000 + kGuard) + 4000);
}

TEST_CASE("recorded outputs take the place of a reference's buffers") {
  v1::PrepareProblem request = one_buffer(v1::OUT, "expected");
  request.add_expected()->set_data(std::string(2000, 'x'));
  CHECK(setup_bytes(request) == 4000 + kGuard + 2000);
}

TEST_CASE("trials take the flush of twice the L2 in addition to the setup") {
  const v1::PrepareProblem request = one_buffer(v1::IN);
  CHECK(trial_bytes(request, 50 << 20) == setup_bytes(request) + (100 << 20) + 2 * kWorkspaceBytes);
  CHECK(trial_bytes(request, 0) == setup_bytes(request) + (64 << 20) + 2 * kWorkspaceBytes);
}

TEST_CASE("a fill with many choices needs a workspace for its distribution") {
  v1::PrepareProblem request = one_buffer(v1::IN);
  request.mutable_buffers(0)->mutable_fill()->set_kind("choice");
  request.mutable_buffers(0)->mutable_fill()->add_parameters(1 << 20);
  CHECK(trial_bytes(request, 0) == setup_bytes(request) + (64 << 20) + (16 << 20));
}

constexpr std::uint64_t kAmple = std::uint64_t{64} << 30;

TEST_CASE("a problem is timed at a prime number of slots: 31, fewer where 4 GiB do not hold them") {
  v1::PrepareProblem request = one_buffer(v1::OUT);
  const auto slots_of = [&](std::uint64_t mebibytes) {
    request.mutable_buffers(0)->set_elements(mebibytes << 18);
    return timing_slots(request, kAmple);
  };
  CHECK(slots_of(100) == 31);
  CHECK(slots_of(400) == 7);
  CHECK(slots_of(512) == 7);
  CHECK(slots_of(600) == 5);
  CHECK(slots_of(2044) == 2);
  CHECK(slots_of(5000) == 1);
}

TEST_CASE("a small problem is timed at as many slots as 64 MiB hold, at most 251") {
  v1::PrepareProblem request = one_buffer(v1::OUT);
  CHECK(slot_bytes(request) == 4096 + 512);
  CHECK(timing_slots(request, kAmple) == 251);
  const auto slots_of = [&](std::uint64_t kibibytes) {
    request.mutable_buffers(0)->set_elements(kibibytes << 8);
    return timing_slots(request, kAmple);
  };
  CHECK(slots_of(200) == 251);
  CHECK(slots_of(500) == 127);
  CHECK(slots_of(1023) == 61);
  CHECK(slots_of(2048) == 31);
}

TEST_CASE("a problem is timed at as many slots as the spare memory holds") {
  const v1::PrepareProblem request = one_buffer(v1::OUT);
  const std::uint64_t each = slot_bytes(request);
  CHECK(timing_slots(request, each - 1) == 1);
  CHECK(timing_slots(request, each) == 2);
  CHECK(timing_slots(request, 5 * each) == 5);
  CHECK(timing_slots(request, 30 * each - 1) == 29);
  CHECK(timing_slots(request, 30 * each) == 31);
  CHECK(timing_slots(request, 250 * each) == 251);
}

TEST_CASE("each buffer comes to all slots, and two of them to all pairs of slots") {
  const std::uint32_t slots = GENERATE(2u, 3u, 7u, 31u, 251u);
  std::set<std::uint32_t> visited;
  for (std::uint32_t sample = 0; sample < slots; ++sample) {
    visited.insert(slot_at(sample, 2, slots));
  }
  CHECK(visited.size() == slots);
  CHECK(*visited.rbegin() == slots - 1);
  std::set<std::pair<std::uint32_t, std::uint32_t>> pairs;
  for (std::uint32_t sample = 0; sample < slots * slots; ++sample) {
    pairs.emplace(slot_at(sample, 0, slots), slot_at(sample, 2, slots));
  }
  CHECK(pairs.size() == (slots > 3 ? slots * slots : slots));
  CHECK(slot_at(5, 3, 1) == 0);
}

TEST_CASE("a large buffer begins a page at each slot as with cudaMalloc") {
  constexpr std::uint64_t kPage = std::uint64_t{2} << 20;
  CHECK(lead_bytes(kPage / 2 - 1) == kRedZoneBytes);
  CHECK(lead_bytes(kPage / 2) == kPage);
  CHECK(further_slot_bytes(kPage / 2) == kPage);
  CHECK(further_slot_bytes(2 * kPage) == 2 * kPage);
  CHECK(further_slot_bytes(2 * kPage + 1) == 3 * kPage);
}

TEST_CASE("slots of a small buffer lie side by side and begin at all offsets from a page of 4 KiB") {
  const std::uint64_t bytes = GENERATE(0u, 1u, 4000u, 8192u, 512u << 10);
  std::set<std::uint64_t> offsets;
  for (std::uint64_t slot = 0; slot < 8; ++slot) {
    offsets.insert(slot * further_slot_bytes(bytes) % 4096);
  }
  CHECK(further_slot_bytes(bytes) >= bytes);
  CHECK(offsets.size() == 8);
}

TEST_CASE("where the L2 stays warm or a graph is launched there is one slot") {
  v1::PrepareProblem warm = one_buffer(v1::OUT), graph = one_buffer(v1::OUT);
  warm.mutable_policy()->set_warm_l2(true);
  graph.mutable_policy()->set_graph_launch(true);
  CHECK(timing_slots(warm, kAmple) == 1);
  CHECK(timing_slots(graph, kAmple) == 1);
}

TEST_CASE("scratch has one slot and counts for none") {
  v1::PrepareProblem request = one_buffer(v1::SCRATCH);
  request.mutable_buffers(0)->set_elements(std::uint64_t{600} << 18);
  CHECK(slot_bytes(request) == 0);
  CHECK(timing_slots(request, kAmple) == 251);
}

}  // namespace
}  // namespace cubind::verify
