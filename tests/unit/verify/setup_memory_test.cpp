#include "tuner/verify/setup_memory.hpp"

#include <catch2/catch.hpp>

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

TEST_CASE("trials take the flush of twice the L2 beside the setup") {
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

TEST_CASE("a problem is timed at as many places as 4 GiB hold and at most thirty") {
  v1::PrepareProblem request = one_buffer(v1::OUT);
  CHECK(place_bytes(request) == (4000 + kGuard + 255) / 256 * 256);
  CHECK(timing_places(request) == 30);
  const auto places_of = [&](std::uint64_t mebibytes) {
    request.mutable_buffers(0)->set_elements(mebibytes << 18);
    return timing_places(request);
  };
  CHECK(places_of(100) == 30);
  CHECK(places_of(508) == 8);
  CHECK(places_of(512) == 7);
  CHECK(places_of(2044) == 2);
  CHECK(places_of(5000) == 1);
}

TEST_CASE("a large buffer begins a page at each place as cudaMalloc has it") {
  constexpr std::uint64_t kPage = std::uint64_t{2} << 20;
  CHECK(lead_bytes(kPage / 2 - 1) == kRedZoneBytes);
  CHECK(lead_bytes(kPage / 2) == kPage);
  CHECK(further_place_bytes(kPage / 2) == 2 * kPage);
  CHECK(further_place_bytes(2 * kPage) == 4 * kPage);
}

TEST_CASE("where the L2 stays warm or a graph is launched there is one place") {
  v1::PrepareProblem warm = one_buffer(v1::OUT), graph = one_buffer(v1::OUT);
  warm.mutable_policy()->set_warm_l2(true);
  graph.mutable_policy()->set_graph_launch(true);
  CHECK(timing_places(warm) == 1);
  CHECK(timing_places(graph) == 1);
}

TEST_CASE("scratch has one place and counts for none") {
  v1::PrepareProblem request = one_buffer(v1::SCRATCH);
  request.mutable_buffers(0)->set_elements(std::uint64_t{600} << 18);
  CHECK(place_bytes(request) == 0);
  CHECK(timing_places(request) == 30);
}

}  // namespace
}  // namespace cubind::verify
