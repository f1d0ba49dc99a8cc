#include <catch2/catch.hpp>
#include <chrono>
#include <iostream>

#include "tests/gpu/device_worker/device_worker_process.hpp"
#include "tests/gpu/device_worker/requests.hpp"

namespace cubind::test {
namespace {

using Catch::Matchers::Contains;

v1::OpenDevice with_timer(const std::string& timer) {
  v1::OpenDevice open;
  open.set_timer(timer);
  return open;
}

v1::MeasuredItem measured(DeviceWorkerProcess& worker, const Requests& problem, const v1::LaunchPlan& plan,
                          std::uint32_t samples = 15) {
  REQUIRE(worker.ask(problem.prepare()).outcome() == v1::CORRECT);
  REQUIRE(worker.ask(Requests::load(plan)).outcome() == v1::CORRECT);
  const v1::DeviceReply reply = worker.ask(Requests::measure(plan, samples));
  INFO(reply.DebugString());
  REQUIRE(reply.outcome() == v1::CORRECT);
  REQUIRE(reply.measured_size() == 1);
  REQUIRE_FALSE(reply.foreign_use());
  return reply.measured(0);
}

// One that reads 16 MB, which every L2 of a data-center GPU since 2020 holds.
Requests read_problem(bool warm) {
  Requests problem;
  problem.buffer("x", "f32", v1::IN, 4 << 20).buffer("y", "f32", v1::OUT, 1024, {.rtol = 0, .atol = 0});
  problem.expected("y", "f32", std::string(4096, '\0'));
  problem.problem().mutable_policy()->set_warm_l2(warm);
  return problem;
}

v1::LaunchPlan read_plan(const Requests& problem) {
  return Requests::plan({problem.launch("read_all", 1024, Requests::dim(256), {"x", "y"}, {1 << 20})});
}

Requests spin_problem() {
  Requests problem;
  problem.buffer("y", "f32", v1::OUT, 1, {.rtol = 0, .atol = 0});
  problem.expected("y", "f32", std::string("\0\0\x80\x3f", 4));
  problem.problem().mutable_policy()->set_warm_l2(true);
  return problem;
}

TEST_CASE("CUPTI times kernels where it is and its tick is small") {
  DeviceWorkerProcess worker;
  const v1::DeviceInfo& info = worker.info();
  std::cout << info.ShortDebugString() << "\n";
  INFO(info.timer_note());
  REQUIRE(info.timer() == "cupti");
  CHECK(info.tick_us() >= 0.0005);
  CHECK(info.tick_us() <= 1.1);
}

TEST_CASE("a kernel of a microsecond is distinguished from the launch around it by both timers") {
  Requests problem = row_problem();
  problem.problem().mutable_policy()->set_warm_l2(true);
  const v1::LaunchPlan plan = row_plan(problem, "right");
  std::vector<double> medians;
  for (const char* timer : {"cupti", "graph"}) {
    DeviceWorkerProcess worker(with_timer(timer));
    CHECK(worker.info().timer() == timer);
    medians.push_back(median(measured(worker, problem, plan)));
    std::cout << timer << " tick " << worker.info().tick_us() << " us, kernel of 33 x 64: " << medians.back()
              << " us\n";
  }
  CHECK(medians[0] > 0.4);
  CHECK(medians[0] < 2.5);
  CHECK(medians[1] > 0.8 * medians[0]);
  CHECK(medians[1] < medians[0] + 1.5);
}

TEST_CASE("a cold L2 makes reading slower under both timers") {
  const char* timer = GENERATE("cupti", "graph");
  DeviceWorkerProcess worker(with_timer(timer));
  const double cold = median(measured(worker, read_problem(false), read_plan(read_problem(false))));
  const double warm = median(measured(worker, read_problem(true), read_plan(read_problem(true))));
  std::cout << timer << ": 16 MB cold " << cold << " us, warm " << warm << " us\n";
  CHECK(cold > 1.1 * warm);
}

TEST_CASE("several launches are timed from the first start to the last end without waiting for the host") {
  const Requests problem = spin_problem();
  constexpr std::int64_t kClocks = 20'000;
  const v1::Launch launch = problem.launch("spin", 1, Requests::dim(32), {"y"}, {kClocks});
  DeviceWorkerProcess worker;
  const double one = median(measured(worker, problem, Requests::plan({launch})));
  const double four = median(measured(worker, problem, Requests::plan({launch, launch, launch, launch})));
  const double quick = median(measured(worker, problem,
                                       Requests::plan(std::vector<v1::Launch>(
                                           8, problem.launch("spin", 1, Requests::dim(32), {"y"}, {100})))));
  std::cout << "spin of " << kClocks << " clocks " << one << " us, four " << four << " us; eight short ones "
            << quick << " us\n";
  CHECK(four > 3.9 * one);
  CHECK(four < 4.0 * one + 10);
  CHECK(quick < 8 * 3.0);  // a launch costs the host 3.9 us
}

TEST_CASE("the policy's graph launch is timed like a stream launch") {
  Requests problem = spin_problem();
  problem.problem().mutable_policy()->set_graph_launch(true);
  const v1::Launch launch = problem.launch("spin", 1, Requests::dim(32), {"y"}, {20'000});
  DeviceWorkerProcess worker;
  const double graph = median(measured(worker, problem, Requests::plan({launch, launch})));
  problem.problem().mutable_policy()->set_graph_launch(false);
  const double stream = median(measured(worker, problem, Requests::plan({launch, launch})));
  CHECK(graph == Approx(stream).epsilon(0.2));
}

TEST_CASE("a clearing that is timed counts and one that is not does not") {
  double medians[2];
  for (const bool timed : {false, true}) {
    Requests problem;
    problem.buffer("x", "i32", v1::IN, 256, {.fill = "permutation"})
        .buffer("counts", "i32", v1::ZERO, 8 << 20, {.timed_zero = timed, .rtol = 0, .atol = 0});
    const v1::Launch launch = problem.launch("count_values", 1, Requests::dim(256), {"x", "counts"}, {256});
    problem.reference(launch);
    DeviceWorkerProcess worker;
    medians[timed ? 1 : 0] = median(measured(worker, problem, Requests::plan({launch})));
  }
  std::cout << "count " << medians[0] << " us, with clearing 32 MB " << medians[1] << " us\n";
  CHECK(medians[1] > medians[0] + 3);
}

TEST_CASE("a clearing counts for the plans that clear alone") {
  Requests problem;
  problem.buffer("x", "i32", v1::IN, 256, {.fill = "permutation"})
      .buffer("counts", "i32", v1::ZERO, 8 << 20, {.timed_zero = true, .rtol = 0, .atol = 0});
  v1::Launch launch = problem.launch("count_values", 1, Requests::dim(256), {"x", "counts"}, {256});
  problem.reference(launch);
  DeviceWorkerProcess worker;
  const double clearing = median(measured(worker, problem, Requests::plan({launch})));
  launch.mutable_parameters(1)->set_role(v1::OUT);
  const double alone = median(measured(worker, problem, Requests::plan({launch})));
  std::cout << "with clearing 32 MB " << clearing << " us, without " << alone << " us\n";
  CHECK(clearing > alone + 3);
}

TEST_CASE("a time below the floor is refused with both figures") {
  Requests problem = read_problem(false);
  const v1::LaunchPlan plan = read_plan(problem);
  DeviceWorkerProcess worker;
  problem.problem().set_floor_min_read_bytes(16 << 20);
  const v1::MeasuredItem honest = measured(worker, problem, plan);
  std::cout << "16 MB: floor " << honest.floor_us() << " us, measured " << median(honest) << " us\n";
  CHECK(honest.floor_us() > 0);
  CHECK_FALSE(honest.below_floor());
  problem.problem().set_floor_min_read_bytes(std::uint64_t{1} << 30);
  const v1::MeasuredItem impossible = measured(worker, problem, plan);
  CHECK(impossible.below_floor());
  CHECK(impossible.outcome() == v1::WRONG_RESULT);
  CHECK_THAT(impossible.detail(), Contains("is below the floor of") && Contains("1073.742 MB read"));
}

TEST_CASE("every block has the GPU's conditions") {
  Requests problem = spin_problem();
  const v1::LaunchPlan plan =
      Requests::plan({problem.launch("spin", 1, Requests::dim(32), {"y"}, {100'000})});
  DeviceWorkerProcess worker;
  const v1::MeasuredItem item = measured(worker, problem, plan);
  std::cout << item.conditions().ShortDebugString() << "\n";
  CHECK(item.conditions().sm_mhz() > 200);
  CHECK(item.conditions().memory_mhz() > 200);
  CHECK(item.conditions().temperature_c() > 10);
  CHECK(item.conditions().power_mw() > 10'000);
  CHECK_FALSE(item.conditions().contended());
}

// A job of 60 configurations has to end within seconds, compiling aside.
TEST_CASE("verifying and timing a variant of a large problem takes milliseconds of the host") {
  constexpr std::int64_t kElements = 64 << 20;
  Requests problem;
  problem.buffer("x", "f32", v1::IN, kElements).buffer("y", "f32", v1::OUT, kElements);
  const v1::Launch launch =
      problem.launch("doubled", kElements / 256, Requests::dim(256), {"x", "y"}, {kElements});
  problem.reference(launch);
  const v1::LaunchPlan plan = Requests::plan({launch});
  DeviceWorkerProcess worker;
  const auto timed = [&](const char* what, const v1::DeviceRequest& request) {
    const auto start = std::chrono::steady_clock::now();
    REQUIRE(worker.ask(request).outcome() == v1::CORRECT);
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    std::cout << what << " " << took.count() << " ms\n";
    return took.count();
  };
  timed("prepare 512 MB", problem.prepare());
  timed("load", Requests::load(plan));
  timed("measure with warm-up", Requests::measure(plan, 1));
  for (std::uint64_t seed = 1; seed < 4; ++seed) {
    CHECK(timed("verify", Requests::verify(plan, seed)) < 200);
    CHECK(timed("measure 1", Requests::measure(plan, 1, false)) < 100);
    CHECK(timed("measure 5", Requests::measure(plan, 5, false)) < 100);
  }
}

TEST_CASE("each of several items has its own times") {
  const Requests problem = spin_problem();
  const auto spinning = [&](std::int64_t clocks) {
    return Requests::plan({problem.launch("spin", 1, Requests::dim(32), {"y"}, {clocks})});
  };
  DeviceWorkerProcess worker;
  REQUIRE(worker.ask(problem.prepare()).outcome() == v1::CORRECT);
  REQUIRE(worker.ask(Requests::load(spinning(20'000), 1)).outcome() == v1::CORRECT);
  REQUIRE(worker.ask(Requests::load(spinning(80'000), 2)).outcome() == v1::CORRECT);
  v1::DeviceRequest request = Requests::measure(spinning(20'000), 9);
  v1::MeasureTrials::Item& longer = *request.mutable_measure()->add_items();
  longer.set_trial(2);
  *longer.mutable_plan() = spinning(80'000);
  longer.set_samples(9);
  const v1::DeviceReply reply = worker.ask(request);
  REQUIRE(reply.measured_size() == 2);
  REQUIRE(reply.measured(0).samples_us_size() == 9);
  CHECK(median(reply.measured(1)) == Approx(4 * median(reply.measured(0))).epsilon(0.1));
}

TEST_CASE("of several items the one whose first run faults is reported") {
  const Requests problem = row_problem();
  DeviceWorkerProcess worker;
  REQUIRE(worker.ask(problem.prepare()).outcome() == v1::CORRECT);
  REQUIRE(worker.ask(Requests::load(row_plan(problem, "right"), 1)).outcome() == v1::CORRECT);
  REQUIRE(worker.ask(Requests::load(row_plan(problem, "illegal_address"), 2)).outcome() == v1::CORRECT);
  v1::DeviceRequest request = Requests::measure(row_plan(problem, "right"), 3);
  v1::MeasureTrials::Item broken = request.measure().items(0);
  broken.set_trial(2);
  *broken.mutable_plan() = row_plan(problem, "illegal_address");
  *request.mutable_measure()->add_items() = broken;
  *request.mutable_measure()->add_items() = request.measure().items(0);
  const v1::DeviceReply reply = worker.ask(request);
  CHECK(reply.sticky());
  CHECK(reply.outcome() == v1::RUNTIME);
  REQUIRE(reply.measured_size() == 1);
  CHECK(reply.measured(0).trial() == 2);
  CHECK(reply.measured(0).outcome() == v1::RUNTIME);
}

}  // namespace
}  // namespace cubind::test
