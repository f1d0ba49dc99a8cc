#include "tuner/search/tunable_effects.hpp"

#include <catch2/catch.hpp>

#include "base/random.hpp"

namespace cubind {
namespace {

// All combinations of A, B and C in 0..3, with a time by `time`.
template <typename Time>
std::vector<TunableEffect> effects(const Time& time) {
  std::vector<Configuration> configurations;
  for (std::int64_t i = 0; i < 64; ++i) {
    configurations.push_back({{{"A", i % 4}, {"B", i / 4 % 4}, {"C", i / 16}, {"FIXED", 7}}});
  }
  std::vector<TimedConfiguration> timed;
  for (const Configuration& one : configurations) {
    timed.push_back({&one, time(*one.value("A"), *one.value("B"))});
  }
  return tunable_effects(timed);
}

TEST_CASE("a tunable that alone decides explains everything and comes first") {
  const auto found = effects([](std::int64_t, std::int64_t b) { return 10.0 * static_cast<double>(1 << b); });
  REQUIRE(found.size() == 3);
  CHECK(found[0].name == "B");
  CHECK(found[0].explained == Approx(1));
  CHECK(found[0].best_value == 0);
  CHECK(found[0].worst_value == 3);
  CHECK(found[0].worst_over_best == Approx(8));
  CHECK(found[1].explained == 0);
}

TEST_CASE("chance explains nothing") {
  Random random(5);
  for (const TunableEffect& one : effects([&](auto, auto) { return 10 + random.uniform(); })) {
    CHECK(one.explained < 0.1);
  }
}

TEST_CASE("equal times explain nothing: what rounding leaves of them is no effect") {
  for (const TunableEffect& one : effects([](auto, auto) { return 2.99435; })) {
    CHECK(one.explained == 0);
  }
}

TEST_CASE("a tunable that was timed at one value is left out") {
  for (const TunableEffect& one : effects([](auto a, auto b) { return 1.0 + static_cast<double>(a + b); })) {
    CHECK(one.name != "FIXED");
    CHECK(one.values == 4);
  }
}

TEST_CASE("nothing timed and one trial explain nothing") {
  CHECK(tunable_effects({}).empty());
  const Configuration one{{{"A", 1}}};
  const TimedConfiguration timed{&one, 3};
  CHECK(tunable_effects({&timed, 1}).empty());
}

}  // namespace
}  // namespace cubind
