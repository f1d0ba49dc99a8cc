#include "tuner/spec/space.hpp"

#include <catch2/catch.hpp>
#include <chrono>

#include "base/error.hpp"
#include "tests/support/refusal_of.hpp"
#include "tests/support/valid_configurations.hpp"
#include "tests/support/wide_spec.hpp"
#include "tests/unit/spec/spec_builder.hpp"

namespace cubind::test {
using test::h200;
using test::SpecBuilder;

namespace {

std::vector<Configuration> every(const KernelSpec& spec) {
  std::vector<Configuration> all{{}};
  for (const Tunable& tunable : spec.tunables) {
    std::vector<Configuration> longer;
    for (const Configuration& shorter : all) {
      for (const std::int64_t value : tunable.values) {
        longer.push_back(shorter);
        longer.back().values.push_back({tunable.name, value});
      }
    }
    all = std::move(longer);
  }
  return all;
}

}  // namespace

TEST_CASE("configurations come in declared order with the last tunable fastest") {
  const auto spec = SpecBuilder().parse();
  const auto valid = valid_configurations(*spec, problem_of(*spec), h200());
  REQUIRE(valid.size() == 3 * 3 * 2);
  CHECK(to_string(valid[0]) == "THREADS=64,VECTOR=1,BLOCKS=1");
  CHECK(to_string(valid[1]) == "THREADS=64,VECTOR=1,BLOCKS=2");
  CHECK(to_string(valid[2]) == "THREADS=64,VECTOR=2,BLOCKS=1");
  CHECK(to_string(valid.back()) == "THREADS=256,VECTOR=4,BLOCKS=2");
}

TEST_CASE("enumeration gives what evaluating every configuration on its own gives") {
  SpecBuilder builder;
  builder.json["constraints"].push_back("THREADS * BLOCKS != 128 || VECTOR > 1");
  builder.json["launches"][0]["shared_bytes"] = "THREADS * VECTOR * 200";
  const auto spec = builder.parse();
  for (const char* text : {"N=100,D=64,T=f32", "N=7,D=63,T=bf16", "N=1,D=2,T=bf16"}) {
    const Problem problem = problem_of(*spec, text);
    std::vector<Configuration> expected;
    for (const Configuration& configuration : every(*spec)) {
      if (!violation(*spec, problem, configuration, h200())) {
        expected.push_back(configuration);
      }
    }
    CHECK(valid_configurations(*spec, problem, h200()) == expected);
    CHECK(count_valid(*spec, problem, h200()).valid == expected.size());
    CHECK(count_valid(*spec, problem, h200()).total == 24);
  }
}

TEST_CASE("a constraint that an earlier one guards is not evaluated where that one is false") {
  SpecBuilder builder;
  builder.json["tunables"]["VECTOR"] = {0, 1, 2};
  builder.json["default"] = {{{"THREADS", 64}, {"VECTOR", 1}, {"BLOCKS", 1}}};
  builder.json["constraints"] = {"VECTOR * BLOCKS != 0", "D % VECTOR == 0"};
  const auto spec = builder.parse();
  // The second constraint is bound before the first and faults for VECTOR = 0.
  CHECK(valid_configurations(*spec, problem_of(*spec), h200()).size() == 3 * 2 * 2);
}

TEST_CASE("an expression that faults names file and pointer and values") {
  SpecBuilder builder;
  builder.json["constraints"] = {"N / (D - 64) >= 0 || VECTOR > 0"};
  const auto spec = builder.parse();
  const Error error = error_of([&] { valid_configurations(*spec, problem_of(*spec), h200()); }).value();
  CHECK(error.where() == "scale.json /constraints/0");
  CHECK_THAT(error.cause(), Catch::Contains("division by zero") && Catch::Contains("D = 64"));
}

TEST_CASE("more threads than a block may have exclude a configuration") {
  SpecBuilder builder;
  builder.json["launches"][0]["block"] = {"THREADS", "VECTOR * 4"};
  const auto spec = builder.parse();
  const auto why =
      violation(*spec, problem_of(*spec), {{{"THREADS", 256}, {"VECTOR", 4}, {"BLOCKS", 1}}}, h200());
  REQUIRE(why);
  CHECK_THAT(*why, Catch::Contains("256 x 16 x 1 has 4096 threads") && Catch::Contains("THREADS = 256"));
}

TEST_CASE("more shared memory than the device has excludes a configuration") {
  SpecBuilder builder;
  builder.json["launches"][0]["shared_bytes"] = "THREADS * 1024";
  const auto spec = builder.parse();
  const Configuration large{{{"THREADS", 256}, {"VECTOR", 1}, {"BLOCKS", 1}}};
  CHECK_THAT(violation(*spec, problem_of(*spec), large, h200()).value(),
             Catch::Contains("the device has 232448"));
  CHECK(valid_configurations(*spec, problem_of(*spec), h200()).size() == 2 * 3 * 2);
}

TEST_CASE("the first default that is valid for the asked problem is the default") {
  const auto spec = SpecBuilder().parse();
  CHECK(to_string(*default_configuration(*spec, problem_of(*spec), h200())) ==
        "THREADS=256,VECTOR=4,BLOCKS=1");
  const Problem odd = problem_of(*spec, "N=100,D=63,T=f32");
  CHECK(to_string(*default_configuration(*spec, odd, h200())) == "THREADS=256,VECTOR=1,BLOCKS=1");
}

TEST_CASE("where no default is valid the first valid configuration is the default") {
  SpecBuilder builder;
  builder.json["constraints"].push_back("THREADS == 128");
  const auto spec = builder.parse();
  CHECK(to_string(*default_configuration(*spec, problem_of(*spec), h200())) ==
        "THREADS=128,VECTOR=1,BLOCKS=1");
  builder.json["constraints"].push_back("N > 1000");
  const auto none = builder.parse();
  CHECK(!default_configuration(*none, problem_of(*none), h200()));
}

TEST_CASE("twelve million raw configurations are counted") {
  SpecBuilder builder;
  builder.json["constraints"] = OrderedJson::array();
  std::string entry = "scale<{T}, {THREADS}, {VECTOR}";
  std::string product = "THREADS";
  for (const char* name : {"A", "B", "C", "D1", "E"}) {
    builder.json["tunables"][name] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14};
    builder.json["default"][0][name] = builder.json["default"][1][name] = 1;
    builder.json["constraints"].push_back(product + " % " + name + " == 0");
    entry += std::string(", {") + name + "}";
  }
  builder.json["launches"][0]["entry"] = entry + ">";
  const auto spec = builder.parse();
  const SpaceSize size = count_valid(*spec, problem_of(*spec), h200());
  CHECK(size.total == 24ull * 537824);
  CHECK(size.valid == 2ull * 4 * 3 * 1024);
}

TEST_CASE("a spec of a million million combinations is read and its configurations are counted and drawn") {
  SpecBuilder builder;
  widen(builder.json, false);
  const auto spec = builder.parse();
  REQUIRE(spec->constraints.size() == 42);
  const Problem problem = problem_of(*spec);
  const SpaceSize size = count_valid(*spec, problem, h200());
  CHECK(size.exact);
  CHECK(size.total == std::uint64_t{24} << 40);
  CHECK(size.valid > 1'000'000'000);
  CHECK(default_configuration(*spec, problem, h200())->value("P7") == 1);
  const KernelSpace space(*spec, problem, h200());
  Random random(1);
  for (int draw = 0; draw < 20; ++draw) {
    const Configuration drawn = space.configuration(space.numbers().sample(random).value());
    CHECK(!violation(*spec, problem, drawn, h200()));
  }
}

TEST_CASE("counting a large space asks whether it is to go on") {
  SpecBuilder builder;
  for (const char* name : {"A", "B", "C", "E"}) {
    for (int value = 1; value <= 10; ++value) {
      builder.json["tunables"][name].push_back(value);
    }
    for (auto& configuration : builder.json["default"]) {
      configuration[name] = 1;
    }
  }
  builder.json["launches"][0]["shared_bytes"] = "A + B + C + E";
  builder.json["constraints"].push_back("A + B + C + E > 100");
  const auto spec = builder.parse();
  const Interrupt stop = [] { throw Error(ErrorCode::Cancelled, "call", "the caller withdrew"); };
  CHECK_THROWS_WITH(count_valid(*spec, problem_of(*spec), h200(), stop), Catch::Contains("withdrew"));
}

}  // namespace cubind::test
