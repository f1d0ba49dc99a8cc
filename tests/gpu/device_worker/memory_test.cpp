#include <catch2/catch.hpp>
#include <iostream>
#include <thread>

#include "tests/gpu/device_worker/device_worker_process.hpp"
#include "tests/gpu/device_worker/requests.hpp"
#include "tuner/verify/setup_memory.hpp"

namespace cubind::test {
namespace {

using Catch::Matchers::Contains;

Requests large_problem(std::uint64_t bytes) {
  Requests problem;
  problem.buffer("y", "u8", v1::OUT, bytes, {.rtol = 0, .atol = 0});
  problem.problem().set_reference("expected");
  return problem;
}

v1::DeviceRequest open_request() {
  v1::DeviceRequest request;
  request.mutable_open();
  return request;
}

TEST_CASE("more memory than the GPU has is an outcome and the worker goes on") {
  DeviceWorkerProcess worker;
  const v1::DeviceReply reply = worker.ask(large_problem(worker.info().facts().memory_bytes() * 2).prepare());
  CHECK(reply.outcome() == v1::OUT_OF_MEMORY);
  CHECK_FALSE(reply.sticky());
  CHECK(worker.ask(large_problem(1 << 20).prepare()).outcome() == v1::CORRECT);
}

TEST_CASE("more memory than the granted share is an outcome that names the share") {
  v1::OpenDevice open;
  open.set_memory_fraction(0.01);
  DeviceWorkerProcess worker(open);
  const v1::DeviceReply reply = worker.ask(large_problem(worker.info().free_memory_bytes() / 50).prepare());
  CHECK(reply.outcome() == v1::OUT_OF_MEMORY);
  CHECK_THAT(reply.detail(), Contains("--memory-fraction"));
}

TEST_CASE("a problem takes exactly the memory that was reckoned for it and a trial no more than that") {
  DeviceWorkerProcess worker;
  Requests problem = large_problem(100 << 20);
  problem.buffer("x", "f32", v1::IN, 1 << 20, {});
  const v1::DeviceRequest request = problem.prepare();
  const std::uint64_t before = worker.ask(Requests::probe()).allocated_bytes();
  const v1::DeviceReply prepared = worker.ask(request);
  REQUIRE(prepared.outcome() == v1::CORRECT);
  const std::uint64_t own =
      verify::trial_bytes(request.prepare(), 0) - verify::setup_bytes(request.prepare());
  CHECK(prepared.allocated_bytes() - before >= verify::setup_bytes(request.prepare()));
  CHECK(prepared.allocated_bytes() <= verify::setup_bytes(request.prepare()) + own);
}

TEST_CASE("scratch that does not fit is the trial's lack of memory and the next trial runs") {
  kernels_cubin();
  DeviceWorkerProcess worker;
  Requests problem = row_problem();
  problem.buffer("scratch", "u8", v1::SCRATCH, 16);
  REQUIRE(worker.ask(problem.prepare()).outcome() == v1::CORRECT);
  const v1::LaunchPlan plan = row_plan(problem, "right");
  REQUIRE(worker.ask(Requests::load(plan)).outcome() == v1::CORRECT);
  v1::DeviceRequest greedy = Requests::measure(plan, 1);
  v1::Parameter& scratch =
      *greedy.mutable_measure()->mutable_items(0)->mutable_plan()->mutable_launches(0)->add_parameters();
  scratch.set_name("scratch");
  scratch.set_source(v1::Parameter::BUFFER);
  scratch.set_type("u8");
  scratch.set_role(v1::SCRATCH);
  scratch.set_extent_bytes(worker.info().facts().memory_bytes() * 2);
  CHECK(worker.ask(greedy).measured(0).outcome() == v1::OUT_OF_MEMORY);
  const v1::DeviceReply right = worker.ask(Requests::verify(plan));
  INFO(right.DebugString());
  CHECK(right.outcome() == v1::CORRECT);
}

TEST_CASE("the share of the free memory that trials may use is reported") {
  v1::OpenDevice open;
  open.set_memory_fraction(0.5);
  DeviceWorkerProcess worker(open);
  const auto free = static_cast<double>(worker.info().free_memory_bytes());
  CHECK(static_cast<double>(worker.info().memory_limit_bytes()) == Approx(free / 2).epsilon(0.02));
}

TEST_CASE("a released problem gives its memory back") {
  DeviceWorkerProcess worker;
  const std::uint64_t before = worker.ask(Requests::probe()).allocated_bytes();
  const v1::DeviceReply prepared = worker.ask(large_problem(1 << 30).prepare());
  CHECK(prepared.allocated_bytes() > before + (1 << 30));
  CHECK(worker.ask(Requests::release()).allocated_bytes() < before + (16 << 20));
}

TEST_CASE("opened for the next job a worker frees what the earlier one had and keeps its context and tick") {
  DeviceWorkerProcess worker;
  const std::uint64_t before = worker.ask(Requests::probe()).allocated_bytes();
  REQUIRE(worker.ask(large_problem(1 << 30).prepare()).outcome() == v1::CORRECT);
  const auto began = std::chrono::steady_clock::now();
  const v1::DeviceReply opened = worker.ask(open_request());
  CHECK(std::chrono::steady_clock::now() - began < std::chrono::milliseconds(300));
  CHECK(opened.outcome() == v1::CORRECT);
  CHECK_FALSE(opened.foreign_use());
  CHECK(opened.allocated_bytes() < before + (16 << 20));
  CHECK(opened.info().tick_us() == worker.info().tick_us());
  const auto limit = static_cast<double>(worker.info().memory_limit_bytes());
  CHECK(static_cast<double>(opened.info().memory_limit_bytes()) == Approx(limit).epsilon(0.02));
  CHECK(worker.ask(large_problem(1 << 20).prepare()).outcome() == v1::CORRECT);
}

TEST_CASE("a second tuner on the same GPU gets an error that it is taken") {
  DeviceWorkerProcess first;
  WorkerProcess second({"device", "--fd", "3"});
  const v1::DeviceReply reply = second.ask(open_request());
  CHECK(reply.outcome() == v1::OUTCOME_UNSPECIFIED);
  CHECK(reply.foreign_use());
  CHECK_THAT(reply.detail(), Contains("another tuner holds this GPU"));
}

TEST_CASE("a killed worker leaves neither lock nor memory behind") {
  std::uint64_t free_before = 0;
  {
    DeviceWorkerProcess worker;
    free_before = worker.info().free_memory_bytes();
    REQUIRE(worker.ask(large_problem(std::uint64_t{4} << 30).prepare()).outcome() == v1::CORRECT);
    worker.process().kill_group();
    worker.ended();
  }
  DeviceWorkerProcess next;
  CHECK(next.info().free_memory_bytes() + (1 << 30) > free_before);
}

TEST_CASE("the facts of the GPU are complete") {
  DeviceWorkerProcess worker;
  const v1::DeviceFacts& facts = worker.info().facts();
  INFO(worker.info().DebugString());
  CHECK((facts.pci_device_id() & 0xffff) == 0x10de);
  CHECK(facts.cc_major() >= 7);
  CHECK(facts.sm_count() > 0);
  CHECK(facts.l2_bytes() > 0);
  CHECK(facts.shared_optin_bytes() >= 64 << 10);
  CHECK(facts.memory_bus_bits() > 0);
  CHECK(facts.power_limit_mw() > 0);
  CHECK(facts.max_sm_mhz() > 0);
  CHECK(worker.info().uuid().starts_with("GPU-"));
  CHECK(worker.info().driver().cuda() >= 12000);
  CHECK_THAT(worker.info().driver().version(), Contains("."));
}

TEST_CASE("our own work is not foreign use and the rule in force is reported") {
  DeviceWorkerProcess worker;
  REQUIRE(worker.ask(large_problem(std::uint64_t{2} << 30).prepare()).outcome() == v1::CORRECT);
  const v1::DeviceReply probed = worker.ask(Requests::probe());
  std::cout << "consent rule: " << probed.info().consent_rule() << "\n";
  CHECK_FALSE(probed.foreign_use());
  CHECK((probed.info().consent_rule() == "processes" ||
         probed.info().consent_rule() == "memory and utilization"));
}

// The kernel stops the device where its input is not what the fill makes.
TEST_CASE("samples take turns among 31 slots that all have the inputs") {
  DeviceWorkerProcess worker;
  Requests problem = row_problem({.fill = "constant", .parameters = {2}});
  problem.buffer("z", "f32", v1::INOUT, 1 << 20).buffer("scratch", "u8", v1::SCRATCH, 16);
  const v1::LaunchPlan plan = row_plan(problem, "right_of_twos");
  REQUIRE(worker.ask(problem.prepare()).outcome() == v1::CORRECT);
  const std::uint64_t one_slot = worker.ask(Requests::load(plan)).allocated_bytes();
  const std::uint64_t each = verify::slot_bytes(problem.prepare().prepare());
  std::uint64_t allocated = 0;
  for (int block = 0; block < 3; ++block) {
    const v1::DeviceReply reply = worker.ask(Requests::measure(plan, 40, false));
    INFO(reply.DebugString());
    CHECK(reply.measured(0).outcome() == v1::CORRECT);
    CHECK(reply.allocated_bytes() >= one_slot + 30 * each);
    CHECK((block < 2 || reply.allocated_bytes() == allocated));  // the second one may need a larger workspace
    allocated = reply.allocated_bytes();
  }
  REQUIRE(worker.ask(Requests::verify(plan)).outcome() == v1::CORRECT);
  CHECK(worker.ask(Requests::release()).allocated_bytes() + 31 * each <= allocated);
}

TEST_CASE("slots that would not leave memory for the trials are not made") {
  constexpr std::uint64_t kBytes = std::uint64_t{40} << 20;
  DeviceWorkerProcess worker;
  v1::DeviceRequest open = open_request();
  open.mutable_open()->set_memory_fraction(static_cast<double>(10 * kBytes) /
                                           static_cast<double>(worker.info().free_memory_bytes()));
  REQUIRE(worker.ask(open).outcome() == v1::CORRECT);
  Requests problem = row_problem();
  problem.buffer("large", "u8", v1::IN, kBytes, {});
  const v1::LaunchPlan right = row_plan(problem, "right");
  REQUIRE(worker.ask(problem.prepare()).outcome() == v1::CORRECT);
  REQUIRE(worker.ask(Requests::load(right)).outcome() == v1::CORRECT);
  const v1::DeviceReply reply = worker.ask(Requests::measure(right, 4, false));
  CHECK(reply.measured(0).outcome() == v1::CORRECT);
  CHECK(reply.allocated_bytes() < 8 * kBytes);
}

}  // namespace
}  // namespace cubind::test
