#include "tuner/search/strategy.hpp"
#include "tests/support/facts.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <set>

#include "tuner/search/exhaustive_strategy.hpp"
#include "tuner/search/model_strategy.hpp"
#include "tuner/search/search_plan.hpp"

namespace cubind {
namespace {

using Numbers = std::vector<std::uint64_t>;
using Values = std::vector<std::int64_t>;

ConfigurationSpace space_of(std::vector<Axis> axes, const std::vector<std::string>& constraints) {
  std::vector<Check> checks;
  for (const std::string& constraint : constraints) {
    checks.push_back(expression_check(constraint, axes));
  }
  return ConfigurationSpace(std::move(axes), std::move(checks));
}

// 4 * 4 * 5 combinations, of which 63 are valid.
ConfigurationSpace small_space() {
  return space_of({{"A", {1, 2, 4, 8}}, {"B", {1, 2, 4, 8}}, {"C", {0, 1, 2, 3, 4}}},
                  {"A * B <= 16", "A != 8 || C > 0"});
}

// Ten tunables, about a million valid configurations.
ConfigurationSpace large_space() {
  std::vector<Axis> axes;
  for (int i = 0; i < 10; ++i) {
    axes.push_back({"P" + std::to_string(i), {1, 2, 4, 8, 16}});
  }
  return space_of(std::move(axes), {"P0 * P1 * P2 <= 512", "P3 % P4 == 0 || P3 == 1", "P5 * P6 >= 4"});
}

// A smooth bowl in the logarithms, its bottom at 2 for every tunable: below the middle of each list.
double bowl_us(const Values& values) {
  double sum = 0;
  for (const std::int64_t value : values) {
    const double off = std::log2(static_cast<double>(value) + 1) - std::log2(3.0);
    sum += off * off;
  }
  return 10 + sum;
}

using Trial = std::function<Observation(std::uint64_t number, const Values& values)>;

Observation timed(std::uint64_t number, const Values& values) {
  return {number, Outcome::Correct, bowl_us(values)};
}

std::vector<Observation> search(const ConfigurationSpace& space, Strategy&& strategy, std::size_t trials,
                                const Trial& trial = timed) {
  std::vector<Observation> history;
  while (history.size() < trials) {
    const Numbers next = strategy.propose(history, 1);
    if (next.empty()) {
      break;
    }
    history.push_back(trial(next[0], space.values(space.point(next[0]))));
  }
  return history;
}

double best_us(const std::vector<Observation>& history) {
  double best = std::numeric_limits<double>::infinity();
  for (const Observation& observation : history) {
    best = std::min(best, observation.time_us.value_or(best));
  }
  return best;
}

TEST_CASE("the exhaustive strategy proposes first what is likely and then everything in canonical order") {
  const ConfigurationSpace space = space_of({{"A", {1, 2}}, {"B", {1, 2, 3}}}, {"A * B != 4"});
  ExhaustiveStrategy strategy(space, {3, 1, 3});
  CHECK(strategy.propose({}, 3) == Numbers{3, 1, 0});
  CHECK(strategy.propose({}, 100) == Numbers{3, 1, 0, 2, 4});
  const std::vector<Observation> history = {{3, Outcome::Correct, 1.0}, {0, Outcome::Compile, std::nullopt}};
  CHECK(strategy.propose(history, 2) == Numbers{1, 2});
}

TEST_CASE("each strategy proposes every configuration of a small space once and nothing else") {
  const ConfigurationSpace space = small_space();
  for (const bool exhaustive : {true, false}) {
    for (const std::size_t at_once : {1, 7, 1000}) {
      const auto strategy = make_strategy({exhaustive, 0, 0}, space, {5}, {}, 1);
      std::vector<Observation> history;
      std::set<std::uint64_t> proposed;
      while (true) {
        const Numbers next = strategy->propose(history, at_once);
        if (next.empty()) {
          break;
        }
        for (const std::uint64_t number : next) {
          REQUIRE(space.valid(number));
          REQUIRE(proposed.insert(number).second);
          history.push_back(timed(number, space.values(space.point(number))));
        }
      }
      CHECK(proposed.size() == space.count());
      CHECK(history.front().number == 5);
    }
  }
}

TEST_CASE("a small space is tried as a whole and a larger one under a budget") {
  const ConfigurationSpace small = small_space();
  const ConfigurationSpace large = large_space();
  CHECK(plan_search(small, {}).exhaustive);
  const std::uint64_t all = small.count();
  CHECK(plan_search(small, {}).trials == all);
  CHECK(plan_search(small, {all, 0}).exhaustive);
  CHECK_FALSE(plan_search(small, {all - 1, 0}).exhaustive);
  CHECK(plan_search(small, {all - 1, 0}).limit == all - 1);
  CHECK_FALSE(plan_search(small, {0, 10}).exhaustive);
  CHECK(plan_search(small, {0, 10}).limit == 0);
  CHECK_FALSE(plan_search(large, {}).exhaustive);
  CHECK(plan_search(large, {}).limit == kDefaultTrials);
  CHECK(plan_search(large, {large.count(), 0}).exhaustive);
}

TEST_CASE("a space that is too tangled to be counted is searched by the model") {
  std::vector<Axis> axes;
  std::vector<Check> checks;
  for (int i = 0; i < 6; ++i) {
    axes.push_back({"P" + std::to_string(i), {1, 2, 3, 4, 5}});
  }
  for (int i = 0; i < 6; ++i) {  // a ring: every order remembers two axes
    checks.push_back(
        expression_check("P" + std::to_string(i) + " + P" + std::to_string((i + 1) % 6) + " <= 6", axes));
  }
  const ConfigurationSpace space(axes, checks, {.max_edges = 160});
  REQUIRE_FALSE(space.exact());
  const SearchPlan plan = plan_search(space, {50, 0});
  CHECK_FALSE(plan.exhaustive);
  CHECK(plan.trials == 50);
  CHECK_FALSE(plan_search(space, {space.size(), 0}).exhaustive);  // numbers have gaps
  for (const std::uint64_t number : make_strategy(plan, space, {}, {}, 1)->propose({}, 8)) {
    CHECK(space.valid(number));
  }
}

TEST_CASE("a search covers every budget under which it would try nothing more") {
  const auto whole = test::search_of({}, kExhaustiveSearch, 60, 0, true);
  CHECK(covers(whole, {}));
  CHECK(covers(whole, {1'000, 0}));
  const auto model = test::search_of({}, kModelSearch, kDefaultTrials, 0, false);
  CHECK(covers(model, {}));
  CHECK(covers(model, {kDefaultTrials - 1, 0}));
  CHECK_FALSE(covers(model, {kDefaultTrials + 1, 0}));
  CHECK_FALSE(covers(model, {0, 60}));
  const auto timed = test::search_of({}, kModelSearch, 100, 60, false);
  CHECK(covers(timed, {0, 60}));
  CHECK_FALSE(covers(timed, {0, 61}));
  CHECK_FALSE(covers(timed, {}));
  CHECK_FALSE(covers(test::search_of({}, "model/0", 1'000, 0, false), {}));
}

TEST_CASE("a model's proposals are a function of seed and history") {
  const ConfigurationSpace space = large_space();
  const auto history = search(space, ModelStrategy(space, {}, 1), 40);
  CHECK(search(space, ModelStrategy(space, {}, 1), 40).back().number == history.back().number);
  CHECK(ModelStrategy(space, {}, 1).propose(history, 5) == ModelStrategy(space, {}, 1).propose(history, 5));
  CHECK(ModelStrategy(space, {}, 1).propose({}, 5) != ModelStrategy(space, {}, 2).propose({}, 5));
  const std::span<const Observation> shorter(history.data(), history.size() - 1);
  CHECK(ModelStrategy(space, {}, 1).propose(shorter, 1) == Numbers{history.back().number});
}

TEST_CASE("a model that is asked while trials are under way proposes the same after a restart") {
  const ConfigurationSpace space = large_space();
  ModelStrategy strategy(space, {}, 1);
  std::vector<Observation> history;
  for (std::size_t trial = 0; trial < 60; ++trial) {
    const Numbers next = strategy.propose(history, trial + kModelAhead - history.size());
    if (trial % 5 == 0) {
      CHECK(ModelStrategy(space, {}, 1).propose(history, next.size()) == next);
    }
    for (const std::uint64_t number : next) {
      history.push_back({number, Outcome::Correct, std::nullopt});
    }
    const std::uint64_t tried = history[trial].number;
    history[trial] = trial % 9 == 4 ? Observation{tried, Outcome::Runtime, std::nullopt}
                                    : timed(tried, space.values(space.point(tried)));
  }
}

TEST_CASE("a model begins with what is given and with the middle of the space") {
  const ConfigurationSpace space = large_space();
  const std::uint64_t middle = space.number_of_values(Values(10, 4)).value();
  CHECK(ModelStrategy(space, {}, 1).propose({}, 1) == Numbers{middle});
  CHECK(ModelStrategy(space, {7}, 1).propose({}, 2) == Numbers{7, middle});
}

TEST_CASE("a model begins near a middle that is not valid") {
  const ConfigurationSpace space =
      space_of({{"A", {1, 2, 4, 8, 16}}, {"B", {1, 2, 4, 8, 16}}, {"C", {1, 2, 3}}}, {"A * B * C != 32"});
  const Values nearest = space.values(space.point(ModelStrategy(space, {}, 1).propose({}, 1).at(0)));
  const std::set<Values> a_step_off = {{2, 4, 2}, {8, 4, 2}, {4, 2, 2}, {4, 8, 2}};
  CHECK(a_step_off.contains(nearest));
}

TEST_CASE("a model finds a round size in a long list, among tunables that do not matter") {
  std::vector<std::int64_t> sizes;
  for (std::int64_t size = 32; size <= 1024; size += 32) {
    sizes.push_back(size);
  }
  const ConfigurationSpace space =
      space_of({{"A", sizes}, {"B", sizes}, {"C", {0, 1, 2, 3}}, {"D", {0, 1, 2, 3}}, {"E", {0, 1}}}, {});
  const auto time_us = [](const Values& values) {
    const double rest = values[0] == 64 || values[0] == 128 || values[0] == 256 || values[0] == 512 ? 0 : 4;
    return 10 + rest + std::abs(std::log2(static_cast<double>(values[0]) / 256)) +
           std::abs(std::log2(static_cast<double>(values[1]) / 320));
  };
  int found = 0;
  for (std::uint64_t seed = 0; seed < 2; ++seed) {
    const auto history =
        search(space, ModelStrategy(space, {}, seed), 100, [&](std::uint64_t number, const Values& values) {
          return Observation{number, Outcome::Correct, time_us(values)};
        });
    found += best_us(history) <= 10.2 ? 1 : 0;
  }
  CHECK(found == 2);
}

TEST_CASE("a model finds in a hundred trials what a thousand draws do not") {
  const ConfigurationSpace space = large_space();
  const double found = best_us(search(space, ModelStrategy(space, {}, 1), 100));
  Random random(1);
  double drawn = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 1000; ++i) {
    drawn = std::min(drawn, bowl_us(space.values(space.point(space.sample(random).value()))));
  }
  CHECK(found < drawn);
  CHECK(found < 11);
}

TEST_CASE("a model keeps away from where configurations fail") {
  const ConfigurationSpace space = large_space();
  const auto fails = [](const Values& values) { return values[0] == 2 || values[1] == 2; };
  const auto history =
      search(space, ModelStrategy(space, {}, 1), 80, [&](std::uint64_t number, const Values& values) {
        return fails(values) ? Observation{number, Outcome::Runtime, std::nullopt} : timed(number, values);
      });
  std::size_t late_failures = 0;
  for (std::size_t i = 40; i < history.size(); ++i) {
    late_failures += history[i].outcome == Outcome::Runtime ? 1 : 0;
  }
  CHECK(late_failures < 15);  // a third of the space fails, and more of what would be fast
  CHECK(best_us(history) < 12);
}

TEST_CASE("a model that has only met failures goes on drawing") {
  const ConfigurationSpace space = large_space();
  const auto history =
      search(space, ModelStrategy(space, {}, 1), 40, [](std::uint64_t number, const Values&) {
        return Observation{number, Outcome::Compile, std::nullopt};
      });
  CHECK(history.size() == 40);
}

TEST_CASE("a process proposes elsewhere where what it would propose has neighbours under way") {
  const ConfigurationSpace space = large_space();
  const ModelSettings careful{.bold = 0};
  const auto history = search(space, ModelStrategy(space, {}, 1, careful), 30);
  const auto next_beside = [&](std::span<const std::uint64_t> under_way) {
    std::vector<Observation> all = history;
    for (const std::uint64_t number : under_way.first(8)) {
      all.push_back({number, Outcome::Correct, std::nullopt});
    }
    return ModelStrategy(space, {}, 1, careful).propose(all, 1).at(0);
  };
  Random random(9);
  Numbers far(8);
  std::ranges::generate(far, [&] { return space.sample(random).value(); });
  const std::uint64_t next = next_beside(far);
  const auto near = space.neighbours(next);
  REQUIRE(near.size() >= 8);
  CHECK(next_beside(near) != next);
}

TEST_CASE("a model looks for more than the next percent as long as it is bold") {
  const ConfigurationSpace space = large_space();
  const ModelSettings never{.bold = 0};
  const auto history = search(space, ModelStrategy(space, {}, 1), ModelSettings{}.bold + 2);
  const auto next = [&](std::size_t trials, const ModelSettings& settings) {
    return ModelStrategy(space, {}, 1, settings).propose(std::span(history).first(trials), 6);
  };
  CHECK(next(40, {}) != next(40, never));
  CHECK(next(history.size(), {}) == next(history.size(), never));
}

TEST_CASE("a model begins with the first of its hints and says how many proposals need no result") {
  const ConfigurationSpace space = large_space();
  Numbers hints(kModelHints + 8);
  std::iota(hints.begin(), hints.end(), 100);
  const auto strategy = make_strategy({false, 0, 0}, space, {7, 101}, hints, 1);
  Numbers expected = {7, 101, 100};
  expected.insert(expected.end(), hints.begin() + 2, hints.begin() + kModelHints);
  CHECK(strategy->propose({}, expected.size()) == expected);
  CHECK(strategy->given() == expected.size() + 1);  // and the middle
  const auto everything = make_strategy({true, 0, 0}, space, {7}, hints, 1);
  CHECK(everything->propose({}, 25).back() == hints.back());
}

TEST_CASE("a model that knows much looks for the next percent for a while") {
  const ConfigurationSpace space = large_space();
  const ModelSettings cold;
  const ModelSettings told{.warm = true};
  const ModelSettings careful{.margins = {}};
  const auto history = search(space, ModelStrategy(space, {}, 1), cold.careful + 2);
  for (std::size_t trial = cold.initial; trial < history.size(); ++trial) {
    const auto next = [&](const ModelSettings& some) {
      return ModelStrategy(space, {}, 1, some).propose(std::span(history).first(trial), 1);
    };
    CHECK(next(told) == next(trial < cold.careful ? careful : cold));
  }
}

TEST_CASE("what has no time yet is not proposed again") {
  const ConfigurationSpace space = large_space();
  auto history = search(space, ModelStrategy(space, {}, 1), 30);
  const Numbers open = ModelStrategy(space, {}, 1).propose(history, 4);
  for (const std::uint64_t number : open) {
    history.push_back({number, Outcome::Correct, std::nullopt});
  }
  for (const std::uint64_t number : ModelStrategy(space, {}, 1).propose(history, 20)) {
    CHECK(std::find(open.begin(), open.end(), number) == open.end());
  }
}

TEST_CASE("a space of one configuration and one without any are exhausted at once") {
  const ConfigurationSpace one = space_of({{"A", {7}}}, {});
  CHECK(ModelStrategy(one, {}, 1).propose({}, 3) == Numbers{0});
  CHECK(ExhaustiveStrategy(one, {}).propose({}, 3) == Numbers{0});
  const ConfigurationSpace none = space_of({{"A", {7}}}, {"A < 7"});
  CHECK(ModelStrategy(none, {}, 1).propose({}, 3).empty());
  CHECK(ExhaustiveStrategy(none, {}).propose({}, 3).empty());
}

TEST_CASE("a space of a million million combinations is searched") {
  std::vector<Axis> axes;
  std::vector<std::string> constraints;
  for (int i = 0; i < 20; ++i) {
    axes.push_back({"P" + std::to_string(i), {1, 2, 4, 8}});
  }
  for (int i = 0; i < 40; ++i) {
    const auto name = [&](int step) { return "P" + std::to_string((i + step) % 20); };
    constraints.push_back(name(0) + " * " + name(1) + " * " + name(i < 20 ? 2 : 3) + " <= 128");
  }
  const ConfigurationSpace space = space_of(std::move(axes), constraints);
  const auto history = search(space, ModelStrategy(space, {}, 1), 60);
  CHECK(best_us(history) < best_us({history.begin(), history.begin() + 10}) - 2);
}

}  // namespace
}  // namespace cubind
