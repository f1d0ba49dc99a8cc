#include "client/cubindctl/choices.hpp"

#include <catch2/catch.hpp>

namespace cubind::ctl {
namespace {

Configuration configuration(std::int64_t threads) { return {{{"THREADS", threads}}}; }

const Problem kProblem{{{"N", 1024}}, {}, {}, ""};

TableTrial trial(std::int64_t threads, double time_us, std::size_t rounds) {
  TableTrial made;
  made.context.kernel = "scale";
  made.context.problem = kProblem;
  made.context.policy = "cold/3,stream";
  made.context.configuration = configuration(threads);
  made.tick_us = 0.032;
  made.screening = {{{time_us, time_us, time_us}, {}}};
  for (std::size_t round = 0; round < rounds; ++round) {
    made.finals.push_back({{time_us * (1 + 0.1 * static_cast<double>(round % 7))}, {}});
  }
  return made;
}

RepeatedProblem repeated(const std::vector<std::int64_t>& choices) {
  RepeatedProblem one{"scale", kProblem, "cold/3,stream", "nvidia-h200", {}};
  for (const std::int64_t threads : choices) {
    one.choices.push_back(configuration(threads));
  }
  return one;
}

}  // namespace

TEST_CASE("a flip is a choice that is not the one before") {
  CHECK(flips(repeated({32, 32, 64, 32, 32}).choices) == 2);
  CHECK(flips(repeated({32}).choices) == 0);
}

TEST_CASE("every choice and the fastest trials are measured once each") {
  Table table;
  table.trials = {trial(32, 30, 0), trial(64, 10, 0), trial(128, 20, 0), trial(256, 11, 0)};
  CHECK(to_measure(repeated({32, 64, 32}), table, 2) ==
        std::vector{configuration(32), configuration(64), configuration(256)});
}

TEST_CASE("the regret of a choice is what it takes more than the fastest in the same rounds") {
  Table table;
  table.trials = {trial(32, 102, 40), trial(64, 100, 40), trial(128, 90, 12)};  // the last one took no part
  const auto judged = judge(repeated({32, 64, 32}), table, 40);
  REQUIRE(judged.size() == 2);
  CHECK(judged[0].configuration == configuration(64));
  CHECK(judged[0].regret == Approx(0).margin(1e-9));
  CHECK(judged[0].chosen == 1);
  CHECK(judged[1].regret == Approx(0.02));
  CHECK(judged[1].chosen == 2);
}

}  // namespace cubind::ctl
