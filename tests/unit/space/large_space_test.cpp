#include <catch2/catch.hpp>
#include <set>

#include "base/error.hpp"
#include "tests/unit/space/sample_spaces.hpp"
#include "tuner/space/configuration_space.hpp"

namespace cubind::test {
TEST_CASE("a million million combinations are drawn from") {
  for (const SampleSpace& parts : {large_space(), tangled_space()}) {
    const ConfigurationSpace space(parts.axes, parts.checks());
    const std::vector<Check> checks = parts.checks();
    Random random(1);
    std::set<std::uint64_t> drawn;
    for (int i = 0; i < 1000; ++i) {
      const std::uint64_t number = space.sample(random).value();
      const auto values = space.values(space.point(number));
      drawn.insert(number);
      for (const Check& check : checks) {
        REQUIRE(check.holds(values));
      }
      REQUIRE(space.number_of_values(values) == number);
    }
    CHECK(drawn.size() > 990);
  }
}

TEST_CASE("axes that no check connects multiply") {
  SampleSpace parts;
  for (int i = 0; i < 40; ++i) {
    parts.axes.push_back({"P" + std::to_string(i), {1, 2, 3}});
  }
  // Pairs that lie twenty axes apart: in declared order the frontier would be twenty axes wide.
  for (int i = 0; i < 20; ++i) {
    parts.constraints.push_back("P" + std::to_string(i) + " < P" + std::to_string(i + 20));
  }
  std::uint64_t expected = 1;
  for (int i = 0; i < 20; ++i) {
    expected *= 3;
  }
  CHECK(ConfigurationSpace(parts.axes, parts.checks()).count() == expected);
}

TEST_CASE("more than 2 to the 62 valid configurations are an error") {
  std::vector<Axis> axes;
  for (int i = 0; i < 63; ++i) {
    axes.push_back({"P" + std::to_string(i), {1, 2}});
  }
  CHECK_THROWS_WITH(ConfigurationSpace(axes, {}), Catch::Contains("more than 2^62"));
  axes.pop_back();
  CHECK(ConfigurationSpace(axes, {}).count() == std::uint64_t{1} << 62);
}

TEST_CASE("more axes than are taken are refused with the limit") {
  std::vector<Axis> axes;
  for (int i = 0; i < 65; ++i) {
    axes.push_back({"P" + std::to_string(i), {1}});
  }
  CHECK_THROWS_WITH(ConfigurationSpace(axes, {}), Catch::Contains("65 axes, at most 64"));
  axes.pop_back();
  CHECK(ConfigurationSpace(axes, {}).count() == 1);
}

TEST_CASE("the construction of a large space asks whether it is to go on") {
  const SampleSpace parts = tangled_space();
  const Interrupt stop = [] { throw Error(ErrorCode::Cancelled, "call", "the caller withdrew"); };
  CHECK_THROWS_WITH(ConfigurationSpace(parts.axes, parts.checks(), {}, stop), Catch::Contains("withdrew"));
}

TEST_CASE("the steps of a construction are bounded") {
  const SampleSpace parts = tangled_space();
  std::uint64_t asked = 0;
  const ConfigurationSpace space(parts.axes, parts.checks(), {.max_edges = 100'000}, [&] { ++asked; });
  CHECK(asked * 4096 < 100'000 * (2 + parts.constraints.size()));
}

}  // namespace cubind::test
