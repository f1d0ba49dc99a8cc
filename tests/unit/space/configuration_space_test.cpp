#include "tuner/space/configuration_space.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <set>

#include "base/error.hpp"
#include "tests/support/refusal_of.hpp"
#include "tests/unit/space/sample_spaces.hpp"

namespace cubind::test {
namespace {

ConfigurationSpace space_of(std::vector<Axis> axes, const std::vector<std::string>& constraints,
                            const SpaceLimits& limits = {}, const Interrupt& interrupt = {}) {
  const SampleSpace parts{axes, constraints};
  return ConfigurationSpace(std::move(axes), parts.checks(), limits, interrupt);
}

// A ring of axes: every order has a frontier of two axes.
SampleSpace ring() {
  SampleSpace parts;
  for (int i = 0; i < 6; ++i) {
    parts.axes.push_back({"P" + std::to_string(i), {1, 2, 3, 4, 5}});
    parts.constraints.push_back("P" + std::to_string(i) + " + P" + std::to_string((i + 1) % 6) + " <= 6");
  }
  return parts;
}

// So narrow that the ring needs checks put off, and wide enough for a chain.
constexpr SpaceLimits kTight{.max_edges = 160};

}  // namespace

TEST_CASE("a space numbers exactly the configurations that brute force finds in canonical order") {
  Random random(1);
  for (int round = 0; round < 300; ++round) {
    const SampleSpace parts = random_space(random);
    const auto expected = brute_force(parts.axes, parts.checks());
    const ConfigurationSpace space(parts.axes, parts.checks());
    REQUIRE(space.count() == expected.size());
    for (std::uint64_t number = 0; number < expected.size(); ++number) {
      REQUIRE(space.values(space.point(number)) == expected[number]);
      REQUIRE(space.number(space.point(number)) == number);
    }
  }
}

TEST_CASE("a configuration that is not valid has no number") {
  Random random(2);
  for (int round = 0; round < 100; ++round) {
    const SampleSpace parts = random_space(random);
    const auto valid = brute_force(parts.axes, parts.checks());
    const ConfigurationSpace space(parts.axes, parts.checks());
    for (const auto& values : brute_force(parts.axes, {})) {
      const bool is_valid = std::binary_search(valid.begin(), valid.end(), values) ||
                            std::find(valid.begin(), valid.end(), values) != valid.end();
      REQUIRE(space.number_of_values(values).has_value() == is_valid);
    }
    CHECK(!space.number_of_values({}));
    CHECK(!space.number_of_values(std::vector<std::int64_t>(parts.axes.size(), 99)));
  }
}

TEST_CASE("checks that are put off leave the same valid configurations") {
  const SampleSpace parts = ring();
  const ConfigurationSpace tight(parts.axes, parts.checks(), kTight);
  REQUIRE(!tight.exact());
  std::set<std::vector<std::int64_t>> met;
  for (std::uint64_t number = 0; number < tight.size(); ++number) {
    if (tight.valid(number)) {
      met.insert(tight.values(tight.point(number)));
      CHECK(tight.number(tight.point(number)) == number);
    } else {
      CHECK(!tight.number(tight.point(number)));
    }
  }
  const auto expected = brute_force(parts.axes, parts.checks());
  CHECK(met == std::set(expected.begin(), expected.end()));
}

TEST_CASE("a space that is not exact says so when it is counted") {
  const SampleSpace parts = ring();
  const ConfigurationSpace tight(parts.axes, parts.checks(), kTight);
  const Error error = error_of([&] { tight.count(); }).value();
  CHECK(error.code() == ErrorCode::ResourceExhausted);
  CHECK_THAT(error.cause(), Catch::Contains("at most " + std::to_string(tight.size())));
}

TEST_CASE("draws are uniform over the valid configurations") {
  const SampleSpace parts = ring();
  const std::size_t expected = brute_force(parts.axes, parts.checks()).size();
  for (const SpaceLimits& limits : {SpaceLimits{}, kTight}) {
    const ConfigurationSpace space(parts.axes, parts.checks(), limits);
    Random random(3);
    std::map<std::uint64_t, double> drawn;
    const double mean = 50;
    for (std::size_t i = 0; i < 50 * expected; ++i) {
      ++drawn[space.sample(random).value()];
    }
    double chi_square = mean * static_cast<double>(expected - drawn.size());
    for (const auto& [number, times] : drawn) {
      chi_square += (times - mean) * (times - mean) / mean;
    }
    const auto freedom = static_cast<double>(expected - 1);
    CHECK(std::abs(chi_square - freedom) < 4 * std::sqrt(2 * freedom));
  }
}

TEST_CASE("neighbours are valid and differ in one axis and have each other") {
  Random random(4);
  for (int round = 0; round < 50; ++round) {
    const SampleSpace parts = random_space(random);
    const ConfigurationSpace space(parts.axes, parts.checks());
    for (std::uint64_t number = 0; number < std::min<std::uint64_t>(space.count(), 40); ++number) {
      for (const std::uint64_t other : space.neighbours(number)) {
        const Point a = space.point(number);
        const Point b = space.point(other);
        std::size_t distance = 0;
        for (std::size_t axis = 0; axis < a.size(); ++axis) {
          distance += a[axis] != b[axis] ? 1 : 0;
        }
        REQUIRE(distance == 1);
        const auto back = space.neighbours(other);
        REQUIRE(std::find(back.begin(), back.end(), number) != back.end());
      }
    }
  }
}

TEST_CASE("all valid configurations that differ in one axis are neighbours") {
  const ConfigurationSpace space = space_of({{"A", {1, 2, 3, 4}}, {"B", {1, 2}}}, {"A != 3 || B == 1"});
  const std::uint64_t two_one = space.number_of_values({2, 1}).value();
  CHECK(space.neighbours(two_one).size() == 4);
  const std::uint64_t two_two = space.number_of_values({2, 2}).value();
  CHECK(space.neighbours(two_two).size() == 3);
}

TEST_CASE("a fault counts only where nothing else excludes the configuration") {
  const std::vector<Axis> axes = {{"A", {0, 1, 2}}, {"B", {0, 1}}, {"C", {1, 2}}};
  CHECK(space_of(axes, {"4 % A == 0", "A * B != 0"}).count() == 2 * 2);
  CHECK(space_of(axes, {"C * A >= 1", "4 % A == 0"}).count() == 2 * 2 * 2);
  CHECK_THROWS_WITH(space_of(axes, {"4 % A == 0", "B + C < 3"}),
                    Catch::Contains("division by zero") && Catch::Contains("A = 0"));
}

TEST_CASE("a constraint without tunables and a space without axes are decided at once") {
  CHECK(space_of({{"A", {1, 2}}}, {"1 > 2"}).count() == 0);
  CHECK(space_of({{"A", {1, 2}}}, {"1 < 2"}).count() == 2);
  CHECK(space_of({}, {}).count() == 1);
  CHECK_THROWS_WITH(space_of({{"A", {1, 2}}}, {"1 / 0 == 1"}), Catch::Contains("division by zero"));
}

TEST_CASE("a space without valid configurations has none to draw") {
  const ConfigurationSpace space = space_of({{"A", {1, 2}}, {"B", {1, 2}}}, {"A > B", "B > A"});
  Random random(5);
  CHECK(space.count() == 0);
  CHECK(!space.sample(random));
  CHECK(!space.valid(0));
}

TEST_CASE("an axis without values is refused by name") {
  CHECK_THROWS_WITH(space_of({{"A", {}}}, {}), Catch::Contains("\"A\" has no values"));
}

TEST_CASE("draws that meet nothing valid end with an error") {
  // Two that read everything and exclude each other: not even one fits within the limit.
  const SampleSpace parts{ring().axes,
                          {"P0 * P1 * P2 + P3 * P4 * P5 > 100", "P0 * P1 * P2 + P3 * P4 * P5 < 100"}};
  const ConfigurationSpace space(parts.axes, parts.checks(), {.max_edges = 100, .max_draws = 1000});
  REQUIRE(!space.exact());
  Random random(6);
  CHECK_THROWS_WITH(space.sample(random), Catch::Contains("in 1000 draws"));
}

}  // namespace cubind::test
