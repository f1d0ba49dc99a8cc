// Kernels that are right when they are looked at and do less when they are timed.
#include <catch2/catch.hpp>

#include "tests/gpu/device_worker/device_worker_process.hpp"
#include "tests/gpu/device_worker/requests.hpp"

namespace cubind::test {
namespace {

// The verification after timing of what was right before. With launches as of an untrusted source.
v1::DeviceReply verified_after_timing(const Requests& problem, const v1::LaunchPlan& plan,
                                      std::uint32_t launches = 0) {
  DeviceWorkerProcess worker;
  REQUIRE(worker.ask(problem.prepare()).outcome() == v1::CORRECT);
  REQUIRE(worker.ask(Requests::load(plan)).outcome() == v1::CORRECT);
  const v1::DeviceReply before = worker.ask(Requests::verify(plan, 1));
  INFO(before.detail());
  REQUIRE(before.outcome() == v1::CORRECT);
  REQUIRE(worker.ask(Requests::measure(plan, 200)).measured(0).samples_us_size() == 200);
  v1::DeviceRequest after = Requests::verify(plan, 2);
  after.mutable_verify()->set_after_timing(true);
  after.mutable_verify()->set_launches(launches);
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

TEST_CASE("one element that is taken for all of a constant input is wrong after timing") {
  kernels_cubin();
  const auto kernel = GENERATE(as<std::string>(), "takes_one_weight", "right");
  const Requests problem = row_problem({}, {.fill = "constant", .parameters = {2}});
  const v1::DeviceReply reply = verified_after_timing(problem, row_plan(problem, kernel));
  INFO(kernel << " " << reply.DebugString());
  CHECK(reply.outcome() == (kernel == "right" ? v1::CORRECT : v1::WRONG_RESULT));
}

TEST_CASE("an untrusted source that reads behind the end of a buffer fails") {
  kernels_cubin();
  const auto kernel = GENERATE(as<std::string>(), "reads_behind_the_end", "right");
  const Requests problem = row_problem();
  const v1::DeviceReply reply = verified_after_timing(problem, row_plan(problem, kernel), 4);
  INFO(kernel << " " << reply.DebugString());
  if (kernel == "right") {
    CHECK(reply.outcome() == v1::CORRECT);
    return;
  }
  CHECK(reply.outcome() == v1::RUNTIME);
  CHECK(reply.sticky());
  CHECK_THAT(reply.detail(), Catch::StartsWith("reads or writes outside of its buffers"));
}

TEST_CASE("an untrusted source that knows the deviation of random numbers is wrong after timing") {
  kernels_cubin();
  const auto [kernel, launches, outcome] =
      GENERATE(table<std::string, std::uint32_t, v1::Outcome>({{"knows_the_deviation", 4, v1::WRONG_RESULT},
                                                               {"knows_the_deviation", 0, v1::CORRECT},
                                                               {"over_root_mean_square", 4, v1::CORRECT}}));
  Requests problem;
  problem.buffer("x", "f32", v1::IN, kRows * kColumns)
      .buffer("w", "f32", v1::IN, kColumns)
      .buffer("y", "f32", v1::OUT, kRows * kColumns, {.rtol = 0.45});
  problem.reference(row_plan(problem, "over_root_mean_square").launches(0));
  const v1::DeviceReply reply = verified_after_timing(problem, row_plan(problem, kernel), launches);
  INFO(kernel << " " << reply.DebugString());
  CHECK(reply.outcome() == outcome);
}

TEST_CASE("an untrusted source that reads a sample of an input is wrong after timing") {
  kernels_cubin();
  constexpr std::int64_t kCount = 1 << 20;
  const auto [kernel, right, constant] = GENERATE(table<std::string, std::string, bool>(
      {{"over_sampled_norm", "over_norm", false}, {"masked_by_a_sample", "masked", true}}));
  const bool cheats = GENERATE(true, false);
  Requests problem;
  problem.buffer("x", "f32", v1::IN, kCount);
  std::vector<std::string> names = {"x"};
  if (constant) {
    problem.buffer("mask", "f32", v1::IN, kCount, {.fill = "constant", .parameters = {2}});
    names.emplace_back("mask");
  }
  names.emplace_back("y");
  problem.buffer("y", "f32", v1::OUT, kCount, {.rtol = constant ? 1e-6 : 0.05});
  const auto launch = [&](const std::string& name) {
    return problem.launch(name, kCount / 8192, Requests::dim(256), names, {kCount});
  };
  problem.reference(launch(right));
  const v1::DeviceReply reply =
      verified_after_timing(problem, Requests::plan({launch(cheats ? kernel : right)}), 4);
  INFO(kernel << " " << reply.DebugString());
  CHECK(reply.outcome() == (cheats ? v1::WRONG_RESULT : v1::CORRECT));
  if (cheats) {
    CHECK_THAT(reply.detail(), Catch::StartsWith("with other values of scattered elements: y["));
  }
}

TEST_CASE("an untrusted source that computes the elements of an iota is wrong after timing") {
  kernels_cubin();
  const auto [kernel, launches, outcome] =
      GENERATE(table<std::string, std::uint32_t, v1::Outcome>({{"knows_the_numbers", 4, v1::WRONG_RESULT},
                                                               {"knows_the_numbers", 0, v1::CORRECT},
                                                               {"numbers", 4, v1::CORRECT}}));
  constexpr std::int64_t kCount = 4096;
  Requests problem;
  problem.buffer("x", "i32", v1::IN, kCount, {.fill = "iota"})
      .buffer("y", "f32", v1::OUT, kCount, {.rtol = 0, .atol = 0});
  const auto launch = [&](const std::string& name) {
    return problem.launch(name, kCount / 256, Requests::dim(256), {"x", "y"}, {kCount});
  };
  problem.reference(launch("numbers"));
  const v1::DeviceReply reply = verified_after_timing(problem, Requests::plan({launch(kernel)}), launches);
  INFO(kernel << " " << reply.DebugString());
  CHECK(reply.outcome() == outcome);
  if (outcome == v1::WRONG_RESULT) {  // x[0] itself may be exchanged: then all are wrong
    CHECK((reply.verification().mismatches() == 2 || reply.verification().mismatches() >= kCount - 1));
  }
}

v1::VerificationResult verified_often(const std::string& kernel) {
  DeviceWorkerProcess worker;
  const Requests problem = row_problem();
  const v1::LaunchPlan plan = row_plan(problem, kernel);
  REQUIRE(worker.ask(problem.prepare()).outcome() == v1::CORRECT);
  REQUIRE(worker.ask(Requests::load(plan)).outcome() == v1::CORRECT);
  v1::VerificationResult result;
  do {  // until the first two launches are right
    v1::DeviceRequest request = Requests::verify(plan, 1);
    request.mutable_verify()->set_launches(128);
    result = worker.ask(request).verification();
  } while (result.launches() == 0);
  return result;
}

TEST_CASE("a race that is wrong once in ten launches is found within 128") {
  kernels_cubin();
  for (int verdict = 0; verdict < 20; ++verdict) {
    const v1::VerificationResult result = verified_often("wrong_once_in_ten");
    INFO(result.DebugString());
    CHECK(result.outcome() == v1::WRONG_RESULT);
    CHECK(result.launches() > 2);
  }
}

TEST_CASE("other bits of equal inputs are seen within 128 launches, and are no wrong result") {
  kernels_cubin();
  const auto kernel = GENERATE(as<std::string>(), "other_bits_once_in_ten", "right");
  const v1::VerificationResult result = verified_often(kernel);
  INFO(kernel << " " << result.DebugString());
  CHECK(result.outcome() == v1::CORRECT);
  CHECK(result.launches() == 128);
  CHECK(result.same_bits() == (kernel == "right"));
}

// An untrusted kernel, timed on the same inputs, or with a seed on others each time.
v1::MeasuredItem timed_on(DeviceWorkerProcess& worker, const v1::LaunchPlan& plan, std::uint64_t seed) {
  v1::DeviceRequest request = Requests::measure(plan, 64);
  request.mutable_measure()->set_input_seed(seed);
  request.mutable_measure()->mutable_items(0)->set_untrusted(true);
  const v1::DeviceReply reply = worker.ask(request);
  INFO(reply.DebugString());
  REQUIRE(reply.measured_size() == 1);
  return reply.measured(0);
}

// Prepares, loads and verifies.
v1::LaunchPlan verified_plan(DeviceWorkerProcess& worker, const std::string& kernel, bool as_graph = false) {
  Requests problem = row_problem();
  problem.problem().mutable_policy()->set_graph_launch(as_graph);
  v1::LaunchPlan plan = row_plan(problem, kernel);
  REQUIRE(worker.ask(problem.prepare()).outcome() == v1::CORRECT);
  v1::DeviceRequest load = Requests::load(plan);
  load.mutable_load()->set_untrusted(true);
  const v1::DeviceReply loaded = worker.ask(load);
  INFO(loaded.DebugString());
  REQUIRE(loaded.outcome() == v1::CORRECT);
  REQUIRE(worker.ask(Requests::verify(plan, 1)).outcome() == v1::CORRECT);
  return plan;
}

TEST_CASE("what earlier launches have left makes no sample on inputs that change faster") {
  kernels_cubin();
  const auto kernel =
      GENERATE(as<std::string>(), "kept_by_a_sample", "slow_at_the_first", "kept_in_shared_memory", "right");
  DeviceWorkerProcess worker;
  const v1::LaunchPlan plan = verified_plan(worker, kernel);
  const v1::MeasuredItem same = timed_on(worker, plan, 0), changed = timed_on(worker, plan, 1001);
  INFO(kernel << " " << median(same) << " " << median(changed) << " " << changed.DebugString());
  CHECK(changed.outcome() == v1::CORRECT);
  CHECK((median(changed) > 10) == (kernel != "right"));
  if (kernel != "kept_in_shared_memory") {  // where the flush may leave it or not
    CHECK(median(same) < 10);
  }
}

TEST_CASE("what a source keeps is wrong after timing though the last round has reset its variables") {
  kernels_cubin();
  DeviceWorkerProcess worker;
  const auto kernel = GENERATE(as<std::string>(), "kept_by_address", "right");
  const v1::LaunchPlan plan = verified_plan(worker, kernel);
  timed_on(worker, plan, 1001);
  v1::DeviceRequest after = Requests::verify(plan, 2);
  after.mutable_verify()->set_after_timing(true);
  after.mutable_verify()->set_launches(4);
  const v1::DeviceReply reply = worker.ask(after);
  INFO(kernel << " " << reply.DebugString());
  CHECK(reply.outcome() == (kernel == "right" ? v1::CORRECT : v1::WRONG_RESULT));
  CHECK(reply.verification().blank_share() < 0.5);
}

TEST_CASE("a verification of an untrusted source says how much of an output would pass as 0") {
  kernels_cubin();
  const auto [w, atol, share] =
      GENERATE(table<double, double, double>({{2, 1e-6, 0}, {2, 1e3, 1}, {0, 1e3, 0}}));
  Requests problem;
  problem.buffer("x", "f32", v1::IN, kRows * kColumns)
      .buffer("w", "f32", v1::IN, kColumns, {.fill = "constant", .parameters = {w}})
      .buffer("y", "f32", v1::OUT, kRows * kColumns, {.atol = atol});
  problem.reference(row_plan(problem, "right").launches(0));
  const v1::DeviceReply reply = verified_after_timing(problem, row_plan(problem, "right"), 4);
  INFO(reply.DebugString());
  CHECK(reply.outcome() == v1::CORRECT);
  CHECK(reply.verification().blank_share() == Approx(share).margin(0.01));
  CHECK(reply.verification().blank_output() == (share > 0 ? "y" : ""));
}

TEST_CASE("what is right when it is verified and does nothing when it is timed is wrong") {
  kernels_cubin();
  DeviceWorkerProcess worker;
  if (worker.info().timer() != "cupti") {
    WARN("only CUPTI's samples leave results");
    return;
  }
  const auto kernel =
      GENERATE(as<std::string>(), "idle_after_sixteen", "changes_inputs_after_sixteen", "right");
  const v1::LaunchPlan plan = verified_plan(worker, kernel, GENERATE(false, true));
  v1::MeasuredItem timed;
  for (std::uint64_t round = 0; round < 16 && timed.outcome() != v1::WRONG_RESULT; ++round) {
    timed = timed_on(worker, plan, round % 2 == 1 ? 1000 + round : 0);
  }
  INFO(kernel << " " << timed.DebugString());
  CHECK((timed.outcome() == v1::WRONG_RESULT) == (kernel != "right"));
  if (kernel != "right") {
    const std::string what = kernel == "changes_inputs_after_sixteen" ? "x: the input was overwritten" : "y[";
    CHECK_THAT(timed.detail(),
               Catch::StartsWith("right when it was verified, wrong when it was timed: " + what));
  }
}

TEST_CASE("what no tolerance and no buffer allows is a wrong result") {
  kernels_cubin();
  const auto kernel = GENERATE(as<std::string>(), "writes_nan", "writes_infinity", "half_precision",
                               "kept_behind_the_output", "kept_in_an_input", "knows_the_inputs");
  DeviceWorkerProcess worker;
  const Requests problem = row_problem();
  const v1::LaunchPlan plan = row_plan(problem, kernel);
  REQUIRE(worker.ask(problem.prepare()).outcome() == v1::CORRECT);
  REQUIRE(worker.ask(Requests::load(plan)).outcome() == v1::CORRECT);
  const v1::DeviceReply reply = worker.ask(Requests::verify(plan, 1));
  INFO(kernel << " " << reply.DebugString());
  CHECK(reply.outcome() == v1::WRONG_RESULT);
}

TEST_CASE("lines that a kernel asks to stay in the L2 are flushed as others are") {
  kernels_cubin();
  constexpr std::int64_t kFloats = 4 << 20;  // 16 MB fit into the L2
  Requests problem;
  problem.buffer("x", "f32", v1::IN, kFloats).buffer("y", "f32", v1::OUT, 256, {.constant = true});
  const auto launch = [&](const std::string& kernel) {
    return problem.launch(kernel, 256, Requests::dim(256), {"x", "y"}, {kFloats / 4});
  };
  problem.reference(launch("read_all"));
  DeviceWorkerProcess worker;
  REQUIRE(worker.ask(problem.prepare()).outcome() == v1::CORRECT);
  const auto time_of = [&](const std::string& kernel) {
    const v1::LaunchPlan plan = Requests::plan({launch(kernel)});
    REQUIRE(worker.ask(Requests::load(plan)).outcome() == v1::CORRECT);
    return median(timed_on(worker, plan, 0));
  };
  const double plain = time_of("read_all"), pinned = time_of("pins_its_lines");
  INFO(plain << " " << pinned);
  CHECK(pinned > 0.9 * plain);
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
