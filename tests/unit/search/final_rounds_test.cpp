#include "tuner/search/final_rounds.hpp"

#include <catch2/catch.hpp>

#include <cmath>

#include "base/random.hpp"
#include "tuner/search/choice.hpp"

namespace cubind {
namespace {

constexpr std::uint32_t kMost = 60;

RoundContext context_of(std::string_view seed = "job", double tick = 0.032) {
  return {Digest::of(seed), tick, {}};
}

// Rounds until done; finalist i reads base[i] with noise of this relative size. Returns the number of rounds.
std::uint32_t run(FinalRounds& rounds, const std::vector<double>& base, double noise) {
  Random random(7);
  std::uint32_t round = 0;
  for (; !rounds.done(); ++round) {
    std::map<std::size_t, double> times;
    for (const std::size_t i : rounds.order(round)) {
      times[i] = base[i] * (1 + noise * (random.uniform() - 0.5));
    }
    rounds.add_round(round, times);
  }
  return round;
}

TEST_CASE("every finalist gets its least number of samples and a clear loser no more") {
  FinalRounds rounds(2, context_of(), kMost);
  CHECK(run(rounds, {10, 12}, 0.01) == 10);
  CHECK(rounds.times(1).size() == 10);
  CHECK_FALSE(rounds.running(1));
}

TEST_CASE("finalists that neither separate nor tie stop after their last round") {
  FinalRounds rounds(2, context_of(), kMost);
  CHECK(run(rounds, {10, 10.0}, 0.5) == kMost);
  CHECK(rounds.times(0).size() == kMost);
}

TEST_CASE("finalists within the tie margin stop early and both stay in the running") {
  FinalRounds rounds(2, context_of(), kMost);
  CHECK(run(rounds, {10, 10.01}, 0.001) == 10);
  CHECK(rounds.running(0));
  CHECK(rounds.running(1));
}

TEST_CASE("a finalist that is surely slower but within the tie margin stays in the running") {
  FinalRounds rounds(2, context_of(), kMost);
  run(rounds, {100.0, 100.05}, 0.0001);
  CHECK(rounds.running(1));
}

TEST_CASE("an interval that reaches below the tie margin is no tie yet") {
  FinalRounds rounds(2, context_of(), kMost);
  for (std::uint32_t round = 0; round < 10; ++round) {
    rounds.add_round(round, {{0, 100.0}, {1, round < 3 ? 90.0 : 100.0}});
  }
  CHECK_FALSE(rounds.done());
}

TEST_CASE("the order of a round is a function of the seed and the round") {
  const FinalRounds a(8, context_of("one"), kMost), b(8, context_of("one"), kMost),
      c(8, context_of("two"), kMost);
  CHECK(a.order(3) == b.order(3));
  CHECK(a.order(3) != a.order(4));
  CHECK(a.order(3) != c.order(3));
  auto sorted = a.order(3);
  std::ranges::sort(sorted);
  CHECK(sorted == std::vector<std::size_t>{0, 1, 2, 3, 4, 5, 6, 7});
}

TEST_CASE("a finalist that was removed takes no part in later rounds") {
  FinalRounds rounds(3, context_of(), kMost);
  rounds.remove(1);
  CHECK(rounds.order(0).size() == 2);
  CHECK(rounds.removed(1));
}

TEST_CASE("a single finalist gets its least number of samples") {
  FinalRounds rounds(1, context_of(), kMost);
  CHECK(run(rounds, {10}, 0.1) == 10);
}

// Two finalists that share the clock of a round, each with noise of its own; the first is the incumbent.
bool second_wins(std::uint64_t seed, double second_us) {
  FinalRounds rounds(2, context_of(std::to_string(seed)), kMost);
  Random random(seed);
  for (std::uint32_t round = 0; !rounds.done(); ++round) {
    const double clock = 1 + 0.1 * random.uniform();
    std::map<std::size_t, double> times;
    for (const std::size_t i : rounds.order(round)) {
      times[i] = (i == 0 ? 100 : second_us) * clock * (1 + 0.03 * random.uniform());
    }
    rounds.add_round(round, times);
  }
  return choose_winner({{.times = &rounds.times(0), .running = rounds.running(0), .incumbent = true},
                        {.times = &rounds.times(1), .running = rounds.running(1)}},
                       context_of(std::to_string(seed))) == 1u;
}

TEST_CASE("the same configuration entered twice ties and the incumbent stays") {
  std::size_t changed = 0, found = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    changed += second_wins(seed, 100) ? 1 : 0;
    found += second_wins(seed, 98) ? 1 : 0;
  }
  CHECK(changed <= 10);
  CHECK(found >= 190);
}

// The time of a round, by a timer that ticks every 32 ns: the kernel starts anywhere between two ticks.
double ticking_round_us(Random& random, double time_us, std::uint32_t samples) {
  double sum = 0;
  for (std::uint32_t i = 0; i < samples; ++i) {
    const double end = time_us * (1 + 0.08 * (random.uniform() - 0.5)) / 0.032 + random.uniform();
    sum += 0.032 * std::floor(end);
  }
  return sum / samples;
}

// Of two short kernels; the slower one would win a tie.
bool faster_one_wins(std::uint64_t seed, double slow_us) {
  const RoundContext context = context_of(std::to_string(seed));
  const RoundPlan plan = round_plan(2.0, context);
  FinalRounds rounds(2, context, plan.most_rounds);
  Random random(seed);
  for (std::uint32_t round = 0; !rounds.done(); ++round) {
    std::map<std::size_t, double> times;
    for (const std::size_t i : rounds.order(round)) {
      times[i] = ticking_round_us(random, i == 0 ? slow_us : 2.0, plan.samples);
    }
    rounds.add_round(round, times);
  }
  return choose_winner({{.times = &rounds.times(0), .running = rounds.running(0), .registers = 32},
                        {.times = &rounds.times(1), .running = rounds.running(1), .registers = 64}},
                       context) == 1u;
}

TEST_CASE("of two kernels of two microseconds the faster wins where they are less than a tick apart") {
  std::size_t found = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    found += faster_one_wins(seed, 2.028) ? 1 : 0;
  }
  CHECK(found >= 95);
}

TEST_CASE("a short kernel has more samples in a round, and as many rounds") {
  CHECK(round_plan(12.7, context_of()).samples == 12);
  CHECK(round_plan(12.7, context_of()).most_rounds == 120);
  CHECK(round_plan(12.9, context_of()).samples == 1);
  CHECK(round_plan(12.9, context_of()).most_rounds == 120);
}

TEST_CASE("a ratio is taken over the rounds that both took part in") {
  const RoundTimes a = {{0, 10}, {1, 10}, {5, 90}}, b = {{0, 20}, {1, 20}, {6, 1}};
  const auto ratio = round_ratio(a, b, context_of());
  REQUIRE(ratio);
  CHECK(ratio->ratio == Approx(0.5));
  CHECK(ratio->rounds == 2);
  CHECK_FALSE(round_ratio({{0, 1.0}}, {{1, 1.0}}, context_of()));
}

}  // namespace
}  // namespace cubind
