// Kernels that are right when they are looked at and do less when they are timed.
#include <catch2/catch.hpp>

#include "tests/gpu/device_worker/device_worker_process.hpp"
#include "tests/gpu/device_worker/requests.hpp"

namespace cubind::test {
namespace {

// The verification after timing of what was right before.
v1::DeviceReply verified_after_timing(const Requests& problem, const v1::LaunchPlan& plan) {
  DeviceWorkerProcess worker;
  REQUIRE(worker.ask(problem.prepare()).outcome() == v1::CORRECT);
  REQUIRE(worker.ask(Requests::load(plan)).outcome() == v1::CORRECT);
  const v1::DeviceReply before = worker.ask(Requests::verify(plan, 1));
  INFO(before.detail());
  REQUIRE(before.outcome() == v1::CORRECT);
  REQUIRE(worker.ask(Requests::measure(plan, 200)).measured(0).samples_us_size() == 200);
  v1::DeviceRequest after = Requests::verify(plan, 2);
  after.mutable_verify()->set_after_timing(true);
  return worker.ask(after);
}

TEST_CASE("a result that is kept from an earlier launch is wrong after timing") {
  kernels_cubin();
  const auto kernel = GENERATE(as<std::string>(), "kept_from_the_first", "kept_by_shape", "kept_by_address",
                               "kept_by_first_elements", "kept_by_last_elements", "kept_from_the_fifth");
  const Requests problem = row_problem();
  const v1::DeviceReply reply = verified_after_timing(problem, row_plan(problem, kernel));
  INFO(kernel << " " << reply.DebugString());
  CHECK(reply.outcome() == v1::WRONG_RESULT);
  CHECK(reply.verification().mismatches() > 0);
  CHECK_FALSE(reply.sticky());
}

TEST_CASE("an output that is left alone because it looks finished is wrong after timing") {
  kernels_cubin();
  const Requests problem = row_problem();
  const v1::DeviceReply reply = verified_after_timing(problem, row_plan(problem, "leaves_results"));
  CHECK(reply.outcome() == v1::WRONG_RESULT);
  CHECK(reply.verification().mismatches() == kRows * kColumns);
}

TEST_CASE("a right kernel is right after timing, whatever its buffers are") {
  kernels_cubin();
  constexpr std::int64_t kCount = 4096;
  const auto is_right = [](const Requests& problem, const v1::LaunchPlan& plan) {
    const v1::DeviceReply reply = verified_after_timing(problem, plan);
    INFO(reply.DebugString());
    CHECK(reply.outcome() == v1::CORRECT);
    CHECK(reply.verification().same_bits());
  };
  SECTION("inputs and an output") {
    const Requests problem = row_problem();
    is_right(problem, row_plan(problem, "right"));
  }
  SECTION("an update in place") {
    Requests problem;
    problem.buffer("y", "f32", v1::INOUT, kCount, {.fill = "uniform", .parameters = {-1, 1}});
    const v1::Launch launch = problem.launch("add_one", 16, Requests::dim(256), {"y"}, {kCount});
    problem.reference(launch);
    is_right(problem, Requests::plan({launch}));
  }
  SECTION("a permutation, and counts that begin at zero") {
    Requests problem;
    problem.buffer("x", "i32", v1::IN, kCount, {.fill = "permutation"})
        .buffer("counts", "i32", v1::ZERO, kCount, {.rtol = 0, .atol = 0});
    const v1::Launch launch =
        problem.launch("count_values", 16, Requests::dim(256), {"x", "counts"}, {kCount});
    problem.reference(launch);
    is_right(problem, Requests::plan({launch}));
  }
  SECTION("a partial output") {
    Requests problem;
    problem.buffer("x", "f32", v1::IN, kCount)
        .buffer("y", "f32", v1::OUT, kCount, {.partial = true, .rtol = 0, .atol = 0});
    const v1::Launch launch = problem.launch("copy_bytes", 64, Requests::dim(256), {"x", "y"}, {16000});
    problem.reference(launch);
    is_right(problem, Requests::plan({launch}));
  }
}

}  // namespace
}  // namespace cubind::test
