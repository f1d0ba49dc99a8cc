#include "plan/launch_plan.hpp"

#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "base/error.hpp"
#include "plan/plan_program.hpp"
#include "tests/support/refusal_of.hpp"

namespace cubind::test {

namespace {

const DeviceConstants kDevice{132, 232448, 62914560, 90};

Problem problem(std::int64_t rows, std::int64_t columns = 64) {
  return {{{"N", rows}, {"D", columns}}, {{"T", DType::Bf16}}, {}, ""};
}

Configuration configuration(std::int64_t threads = 128) { return {{{"THREADS", threads}}}; }

PlanTemplate plan_template() {
  LaunchTemplate launch;
  launch.entry = "scale<__nv_bfloat16, 128>";
  launch.grid = {"cdiv(N*D, THREADS)"};
  launch.block = {"THREADS"};
  launch.parameters = {{"x", ParameterSource::Buffer, DType::Bf16, Role::In, "N*D", 16, ""},
                       {"n", ParameterSource::Value, DType::I32, Role::None, "", 0, "N*D"},
                       {"alpha", ParameterSource::Caller, DType::F32, Role::None, "", 0, ""}};
  PlanTemplate plan;
  plan.constraints = {"D % 2 == 0"};
  plan.launches = {launch};
  return plan;
}

PlanResult evaluate(const PlanTemplate& plan, const Problem& asked,
                    const Configuration& with = configuration()) {
  return PlanEvaluator(plan, asked, with, kDevice).evaluate(asked, with);
}

template <typename Edit>
PlanResult evaluate_edited(Edit edit, const Problem& asked = problem(100)) {
  PlanTemplate plan = plan_template();
  edit(plan.launches[0]);
  return evaluate(plan, asked);
}

}  // namespace

TEST_CASE("a plan is evaluated for the asked problem") {
  const LaunchPlan plan = evaluate(plan_template(), problem(100)).plan.value();
  REQUIRE(plan.launches.size() == 1);
  CHECK(plan.launches[0].grid == Dim3{50, 1, 1});
  CHECK(plan.launches[0].block == Dim3{128, 1, 1});
  CHECK(plan.launches[0].parameters[0].extent_bytes == 100 * 64 * 2);
  CHECK(plan.launches[0].parameters[1].value == 6400);
}

TEST_CASE(
    "a program whose settled parts are computed once gives the numbers and verdicts that it gave before") {
  PlanTemplate plan = plan_template();
  plan.launches[0].shared_bytes = "D * sizeof(T) * THREADS";
  const PlanProgram before(plan, problem(100), configuration(), kDevice);
  PlanProgram after(plan, problem(100), configuration(), kDevice);
  std::vector<std::int64_t> values = before.initial_values();
  std::vector<bool> varying(values.size());
  varying[0] = true;  // N
  after.fix(values, varying);
  for (const std::int64_t rows : {0, 1, 99, 100, 4096, 1 << 30}) {  // the last is beyond the i32 n
    values[0] = rows;
    bool all_hold = true;
    for (std::size_t check = 0; check < before.check_count(); ++check) {
      CHECK(after.holds(check, values) == before.holds(check, values));
      all_hold = all_hold && before.holds(check, values);
    }
    CHECK(all_hold == (rows != 1 << 30));
    CHECK(after.shape(0, values).grid == before.shape(0, values).grid);
    CHECK(after.shape(0, values).block == before.shape(0, values).block);
    CHECK(after.shape(0, values).shared_bytes == before.shape(0, values).shared_bytes);
    for (std::size_t i = 0; i < 3; ++i) {
      CHECK(after.parameter_number(0, i, values) == before.parameter_number(0, i, values));
    }
  }
}

TEST_CASE("a plan has the shape of a buffer whose shape is given") {
  const auto shaped = [](std::vector<std::string> shape) {
    return evaluate_edited([&](LaunchTemplate& launch) { launch.parameters[0].shape = std::move(shape); })
        .plan;
  };
  CHECK(shaped({"N", "D / 2", "2"})->launches[0].parameters[0].shape ==
        std::vector<std::int64_t>{100, 32, 2});
  CHECK(shaped({})->launches[0].parameters[0].shape.empty());
}

TEST_CASE("a shape that has not the elements of its extent is an error with both") {
  const auto evaluate_shaped = [](std::vector<std::string> shape) {
    evaluate_edited([&](LaunchTemplate& launch) { launch.parameters[0].shape = std::move(shape); });
  };
  CHECK_THROWS_WITH(evaluate_shaped({"N", "D + 1"}),
                    "/arguments/x/shape: a buffer of [100, 65] does not have the 6400 elements of its extent "
                    "\"N*D\"");
  CHECK_THROWS_WITH(evaluate_shaped({"-N", "-D"}), Catch::Contains("a buffer of [-100, -64]"));
  CHECK_THROWS_WITH(evaluate_shaped({"N", "D / (N - 100)"}), Catch::StartsWith("/arguments/x/shape/1: "));
}

TEST_CASE("the elements of a shape are counted without overflow") {
  CHECK(element_count(std::vector<std::int64_t>{}) == 1);
  CHECK(element_count(std::vector<std::int64_t>{3, 0, 1LL << 62, 1LL << 62}) == 0);
  CHECK(element_count(std::vector<std::int64_t>{1LL << 62, 2}) == std::nullopt);
  CHECK(element_count(std::vector<std::int64_t>{3, -1}) == std::nullopt);
}

TEST_CASE("one evaluator answers every problem of a bucket") {
  const PlanEvaluator evaluator(plan_template(), problem(100), configuration(), kDevice);
  for (std::int64_t rows = 1; rows < 200; ++rows) {
    const LaunchPlan plan = evaluator.evaluate(problem(rows), configuration()).plan.value();
    CHECK(plan == evaluate(plan_template(), problem(rows)).plan);
    CHECK(plan.launches[0].grid.x == (static_cast<std::uint32_t>(rows) * 64 + 127) / 128);
  }
}

TEST_CASE("a constraint that is false is quoted with its values") {
  const PlanResult result = evaluate(plan_template(), problem(100, 63));
  CHECK(!result.plan);
  CHECK(result.violation == "constraint \"D % 2 == 0\" is false where D = 63");
}

TEST_CASE("a zero in a grid leaves the launch out") {
  PlanTemplate plan = plan_template();
  plan.launches.push_back(plan.launches[0]);
  plan.launches[1].grid = {"1"};
  const LaunchPlan result = evaluate(plan, problem(0)).plan.value();
  REQUIRE(result.launches.size() == 1);
  CHECK(result.launches[0].grid == Dim3{1, 1, 1});
}

TEST_CASE("limits of a launch that is left out do not count") {
  const auto result = evaluate_edited([](LaunchTemplate& launch) { launch.block = {"0"}; }, problem(0));
  CHECK(result.plan);
}

TEST_CASE("a cluster is within the limits and divides its grid") {
  const auto violation = [](const std::vector<std::string>& grid, const std::vector<std::string>& cluster) {
    return evaluate_edited([&](LaunchTemplate& launch) {
             launch.grid = grid;
             launch.cluster = cluster;
           })
        .violation;
  };
  CHECK(violation({"6", "4"}, {"2", "4"}).empty());
  CHECK(violation({"0", "4"}, {"5"}).empty());  // left out
  CHECK_THAT(violation({"6", "4"}, {"4"}),
             Catch::Contains("cluster 4 x 1 x 1 does not divide the grid 6 x 4 x 1 in x"));
  CHECK_THAT(violation({"8", "4"}, {"4", "4"}), Catch::Contains("has 16 blocks, at most 8 are portable"));
  CHECK_THAT(violation({"16"}, {"16"}), Catch::Contains("cluster 16 x 1 x 1 leaves 1 to 8 in x"));
  CHECK_THAT(violation({"4"}, {"N - 100"}),
             Catch::Contains("leaves 1 to 8 in x") && Catch::Contains("N = 100"));
}

TEST_CASE("a plan has its launches' clusters and attributes") {
  const auto result = evaluate_edited([](LaunchTemplate& launch) {
    launch.grid = {"8"};
    launch.cluster = {"THREADS / 64"};
    launch.attributes = {.cooperative = true, .priority = -2};
  });
  REQUIRE(result.plan);
  CHECK(result.plan->launches[0].cluster == Dim3{2, 1, 1});
  CHECK(result.plan->launches[0].attributes == LaunchAttributes{.cooperative = true, .priority = -2});
}

TEST_CASE("launch limits exclude what no GPU launches") {
  using Axes = std::vector<std::string>;
  const auto violation = [](const Axes& grid, const Axes& block) {
    return evaluate_edited([&](LaunchTemplate& launch) {
             launch.grid = grid;
             launch.block = block;
           })
        .violation;
  };
  CHECK(violation({"2147483647", "65535", "65535"}, {"16", "1", "64"}).empty());
  CHECK_THAT(violation({"2147483648"}, {"1"}), Catch::Contains("leaves 0 to 2147483647 in x"));
  CHECK_THAT(violation({"1", "65536"}, {"1"}), Catch::Contains("leaves 0 to 65535 in y"));
  CHECK_THAT(violation({"1", "1", "65536"}, {"1"}), Catch::Contains("leaves 0 to 65535 in z"));
  CHECK_THAT(violation({"-N"}, {"1"}), Catch::Contains("grid -100 x 1 x 1") && Catch::Contains("N = 100"));
  CHECK_THAT(violation({"1"}, {"THREADS", "9"}),
             Catch::Contains("has 1152 threads, a block has at most 1024"));
  CHECK_THAT(violation({"1"}, {"1", "1", "65"}), Catch::Contains("leaves 1 to 64 in z"));
  CHECK_THAT(violation({"1"}, {"0"}), Catch::Contains("leaves 1 to 1024 in x"));
  CHECK_THAT(violation({"1"}, {"9223372036854775807"}), Catch::Contains("leaves 1 to 1024 in x"));
}

TEST_CASE("static and dynamic shared memory together stay within what the device has") {
  PlanTemplate plan = plan_template();
  plan.launches[0].shared_bytes = "232448";
  CHECK(evaluate(plan, problem(100)).plan);
  plan.static_shared_bytes = 1;
  CHECK_THAT(evaluate(plan, problem(100)).violation,
             Catch::Contains("232448 bytes of dynamic and 1 of static shared memory, the device has 232448"));
  plan.launches[0].shared_bytes = "-1";
  CHECK_THAT(evaluate(plan, problem(100)).violation, Catch::Contains("-1 bytes of dynamic"));
}

TEST_CASE("a scalar that does not fit its type excludes the configuration rather than wrap") {
  CHECK(evaluate(plan_template(), problem(33554431)).plan);
  CHECK_THAT(
      evaluate(plan_template(), problem(33554432)).violation,
      Catch::Contains("/arguments/n/expr: 2147483648 does not fit i32") && Catch::Contains("N = 33554432"));
}

TEST_CASE("a negative extent excludes the configuration") {
  const auto result = evaluate_edited([](LaunchTemplate& launch) { launch.parameters[0].extent = "D - N"; });
  CHECK_THAT(result.violation, Catch::Contains("/arguments/x/extent: -36 elements"));
}

TEST_CASE("an overflow is an error at the pointer of its expression with the values") {
  const auto where = [](auto edit) {
    const Error error = error_of([&] { evaluate_edited(edit); }).value();
    CHECK_THAT(error.cause(), Catch::Contains("N = 100"));
    return error.where();
  };
  CHECK(where([](LaunchTemplate& launch) { launch.grid = {"9223372036854775807 * N"}; }) ==
        "/launches/0/grid/0");
  CHECK(where([](LaunchTemplate& launch) {
          launch.block = {"1", "D / (N - 100)"};
        }) == "/launches/0/block/1");
  CHECK(where([](LaunchTemplate& launch) { launch.shared_bytes = "N % (N - 100)"; }) ==
        "/launches/0/shared_bytes");
  CHECK(where([](LaunchTemplate& launch) { launch.parameters[0].extent = "4611686018427387904 * N / N"; }) ==
        "/arguments/x/extent");
}

TEST_CASE("an extent of more bytes than 63 bits is an error") {
  CHECK_THROWS_WITH(
      evaluate_edited([](LaunchTemplate& launch) { launch.parameters[0].extent = "9223372036854775807"; }),
      Catch::Contains("exceed 2^63 bytes"));
}

TEST_CASE("device constants and sizeof are known to expressions") {
  PlanTemplate plan = plan_template();
  plan.launches[0].grid = {"device.sm_count", "device.cc", "device.l2_bytes / 1048576"};
  plan.launches[0].shared_bytes = "device.shared_optin - sizeof(T) * sizeof(f64)";
  const Launch launch = evaluate(plan, problem(100)).plan.value().launches.at(0);
  CHECK(launch.grid == Dim3{132, 90, 60});
  CHECK(launch.shared_bytes == 232448 - 16);
}

TEST_CASE("a problem with other names or types is refused") {
  const PlanEvaluator evaluator(plan_template(), problem(100), configuration(), kDevice);
  Problem other = problem(100);
  other.types[0].type = DType::F32;
  CHECK_THROWS_AS(evaluator.evaluate(other, configuration()), Error);
  other = problem(100);
  std::swap(other.dims[0], other.dims[1]);
  CHECK_THROWS_AS(evaluator.evaluate(other, configuration()), Error);
  CHECK_THROWS_AS(evaluator.evaluate(problem(100), {}), Error);
}

TEST_CASE("a template that no evaluator can read is refused when it is compiled") {
  const auto compile = [](auto edit) {
    PlanTemplate plan = plan_template();
    edit(plan);
    CHECK_THROWS_AS(PlanEvaluator(plan, problem(100), configuration(), kDevice), Error);
  };
  compile([](PlanTemplate& plan) { plan.constraints = {"D %"}; });
  compile([](PlanTemplate& plan) { plan.constraints = {"M > 0"}; });
  compile([](PlanTemplate& plan) { plan.launches[0].grid = {}; });
  compile([](PlanTemplate& plan) { plan.launches[0].grid = {"1", "1", "1", "1"}; });
}

TEST_CASE("an evaluator serves many threads at once") {
  const PlanEvaluator evaluator(plan_template(), problem(100), configuration(), kDevice);
  std::vector<std::thread> threads;
  std::vector<int> wrong(4);
  for (std::size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      for (std::int64_t rows = 2; rows < 500; rows += 2) {
        const auto plan = evaluator.evaluate(problem(rows), configuration()).plan;
        wrong[t] += plan && plan->launches[0].grid.x == static_cast<std::uint32_t>(rows / 2) ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  CHECK(wrong == std::vector<int>(4));
}

}  // namespace cubind::test
