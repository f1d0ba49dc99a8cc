#include "tuner/spec/space_thinning.hpp"

#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "tests/support/wide_spec.hpp"
#include "tests/unit/spec/spec_builder.hpp"

namespace cubind::test {
namespace {

std::vector<std::string> lines(const std::vector<Thinning>& steps) {
  std::vector<std::string> result;
  for (const Thinning& step : steps) {
    result.push_back(step.where + ": -" + std::to_string(step.rejected) + " =" + std::to_string(step.left));
  }
  return result;
}

}  // namespace

TEST_CASE("each constraint is charged with what those before it have left") {
  SpecBuilder builder;
  builder.json["constraints"] = {"VECTOR < 8", "VECTOR != 8", "THREADS * VECTOR <= 256"};
  const auto spec = builder.parse();
  const auto steps = thin_out(*spec, problem_of(*spec), h200());
  CHECK(lines(steps) == std::vector<std::string>{"/constraints/0: -6 =18", "/constraints/1: -0 =18",
                                                 "/constraints/2: -6 =12"});
  CHECK(steps[2].condition == "THREADS * VECTOR <= 256");
}

TEST_CASE("the condition that leaves nothing is named and no other") {
  SpecBuilder builder;
  builder.json["constraints"] = {"VECTOR < 8", "THREADS * VECTOR < 1", "VECTOR != 8"};
  const auto none = builder.parse();
  CHECK(what_leaves_none(*none, problem_of(*none), h200()) == "/constraints/1: THREADS * VECTOR < 1");
  builder.json["constraints"] = {"VECTOR < 8"};
  const auto some = builder.parse();
  CHECK(what_leaves_none(*some, problem_of(*some), h200()).empty());
}

TEST_CASE("a launch limit is listed where it rejects something") {
  SpecBuilder builder;
  builder.json["constraints"] = OrderedJson::array();
  builder.json["launches"][0]["shared_bytes"] = "THREADS * 1024";
  const auto spec = builder.parse();
  const auto steps = thin_out(*spec, problem_of(*spec), h200());
  CHECK(lines(steps) == std::vector<std::string>{"/launches/0/shared_bytes: -8 =16"});
  CHECK_THAT(steps[0].condition,
             Catch::StartsWith("at most the 232448 bytes of shared memory of a block (") &&
                 Catch::Contains("262144 bytes of dynamic and 0 of static shared memory") &&
                 Catch::Contains("THREADS = 256"));
}

TEST_CASE("a launch limit is listed with the dimension and the configuration that pass it") {
  SpecBuilder builder;
  builder.json["constraints"] = {"VECTOR < 8"};
  builder.json["launches"][0]["grid"] = {"1", "1", "N * VECTOR * min(BLOCKS, 1)"};
  const auto spec = builder.parse();
  const auto steps = thin_out(*spec, problem_of(*spec, "N=40000,D=8,T=f32"), h200());
  REQUIRE(lines(steps) == std::vector<std::string>{"/constraints/0: -6 =18", "/launches/0: -12 =6"});
  CHECK_THAT(steps[1].condition, Catch::Contains("(grid 1 x 1 x 80000 leaves 0 to 65535 in z where") &&
                                     Catch::Contains("VECTOR = 2"));
  builder.json["constraints"] = OrderedJson::array();
  builder.json["launches"][0]["grid"] = {"min(BLOCKS, 1)"};
  builder.json["launches"][0]["block"] = {"THREADS", "16"};
  const auto wide = builder.parse();
  const auto threads = thin_out(*wide, problem_of(*wide), h200());
  REQUIRE_FALSE(threads.empty());
  CHECK_THAT(threads[0].condition, Catch::Contains("has 2048 threads, a block has at most 1024"));
}

TEST_CASE("nothing is listed behind the condition that leaves nothing") {
  SpecBuilder builder;
  builder.json["constraints"] = {"N < 0", "VECTOR < 8"};
  const auto spec = builder.parse();
  CHECK(lines(thin_out(*spec, problem_of(*spec), h200())) ==
        std::vector<std::string>{"/constraints/0: -24 =0"});
}

TEST_CASE("a constraint that faults where a later one is false is charged to that one") {
  SpecBuilder builder;
  builder.json["constraints"] = {"N % (VECTOR - 1) == 0", "VECTOR > 1"};
  const auto spec = builder.parse();
  const auto steps = thin_out(*spec, problem_of(*spec, "N=12,D=8,T=f32"), h200());
  REQUIRE(steps.size() == 1);
  CHECK(steps[0].where == "/constraints/1");
  CHECK(steps[0].rejected + steps[0].left == 24);
}

TEST_CASE("thinning a space that is too tangled ends where it can no longer be counted") {
  SpecBuilder builder;
  widen(builder.json, true);
  const auto spec = builder.parse();
  std::uint64_t asked = 0;
  const auto steps = thin_out(*spec, problem_of(*spec), h200(), [&] { ++asked; });
  CHECK(steps.size() >= 5);
  CHECK(steps.size() < spec->constraints.size());
  CHECK(asked * 4096 < 6'000'000);
}

}  // namespace cubind::test
