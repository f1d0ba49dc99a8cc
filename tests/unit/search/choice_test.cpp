#include "tuner/search/choice.hpp"

#include <catch2/catch.hpp>

namespace cubind {
namespace {

const RoundContext kContext{Digest::of("job"), 0.032, {}};

RoundTimes constant(double time) { return {{0, time}, {1, time}, {2, time}, {3, time}, {4, time}}; }

const RoundTimes kFast = constant(100.0), kTied = constant(100.05), kSlow = constant(101.0);

TEST_CASE("the lowest median wins") {
  CHECK(choose_winner({{.times = &kSlow}, {.times = &kFast}}, kContext) == 1u);
}

TEST_CASE("inside the tie margin the incumbent stays") {
  CHECK(choose_winner({{.times = &kFast, .is_default = true}, {.times = &kTied, .incumbent = true}},
                      kContext) == 1u);
}

TEST_CASE("inside the tie margin and without an incumbent the default wins") {
  CHECK(choose_winner({{.times = &kFast}, {.times = &kTied, .is_default = true}}, kContext) == 1u);
}

TEST_CASE("outside the tie margin neither incumbent nor default is spared") {
  CHECK(choose_winner({{.times = &kFast}, {.times = &kSlow, .incumbent = true, .is_default = true}},
                      kContext) == 0u);
}

TEST_CASE("the tie margin ends at a tenth of a percent") {
  const RoundTimes inside = constant(100.099), outside = constant(100.101);
  CHECK(choose_winner({{.times = &kFast}, {.times = &inside, .incumbent = true}}, kContext) == 1u);
  CHECK(choose_winner({{.times = &kFast}, {.times = &outside, .incumbent = true}}, kContext) == 0u);
}

TEST_CASE("a faster time that may be noise moves no incumbent but wins against what is new") {
  RoundTimes steady, noisy;
  for (std::uint32_t round = 0; round < 10; ++round) {
    steady[round] = 100;
    noisy[round] = round % 5 == 0 ? 104 : 98;
  }
  CHECK(choose_winner({{.times = &noisy}, {.times = &steady, .incumbent = true}}, kContext) == 1u);
  CHECK(choose_winner({{.times = &noisy}, {.times = &steady, .is_default = true}}, kContext) == 0u);
  CHECK(choose_winner({{.times = &noisy, .registers = 64}, {.times = &steady, .registers = 32}}, kContext) ==
        0u);
}

TEST_CASE("the fastest is found by the rounds and not by medians of a drifting clock") {
  RoundTimes fast, slow;
  for (std::uint32_t round = 0; round < 10; ++round) {
    const double drift = 1 + 0.1 * round;
    fast[round] = 100 * drift * (round == 4 || round == 5 ? 1.05 : 1);  // the two in the middle
    slow[round] = 102 * drift;
  }
  CHECK(choose_winner({{.times = &slow}, {.times = &fast}}, kContext) == 1u);
}

TEST_CASE("inside the tie margin fewer registers win and then less shared memory") {
  CHECK(choose_winner({{.times = &kFast, .registers = 64}, {.times = &kTied, .registers = 32}}, kContext) ==
        1u);
  CHECK(choose_winner({{.times = &kFast, .registers = 32, .shared_bytes = 4096},
                       {.times = &kTied, .registers = 32, .shared_bytes = 1024}},
                      kContext) == 1u);
}

TEST_CASE("an equal cost falls to canonical order and not to the order of the contenders") {
  CHECK(choose_winner({{.times = &kFast, .canonical = 9}, {.times = &kTied, .canonical = 2}}, kContext) ==
        1u);
}

TEST_CASE("a separated contender is asked only where none is running") {
  CHECK(choose_winner({{.times = &kFast, .running = false}, {.times = &kSlow}}, kContext) == 1u);
  CHECK(choose_winner({{.times = &kSlow, .running = false}}, kContext) == 0u);
}

TEST_CASE("a choice says which rule decided and how many tied") {
  const auto alone = choose({{.times = &kSlow}, {.times = &kFast}}, kContext);
  REQUIRE(alone);
  CHECK(alone->rule == ChoiceRule::Fastest);
  CHECK(alone->tied == 1);
  const auto cheaper =
      choose({{.times = &kFast, .registers = 64}, {.times = &kTied, .registers = 32}}, kContext);
  REQUIRE(cheaper);
  CHECK(cheaper->winner == 1);
  CHECK(cheaper->leader == 0);
  CHECK(cheaper->tied == 2);
  CHECK(cheaper->rule == ChoiceRule::Registers);
  const auto kept = choose({{.times = &kFast}, {.times = &kTied, .is_default = true}}, kContext);
  REQUIRE(kept);
  CHECK(to_string(kept->rule) == "default");
}

TEST_CASE("without contenders there is no winner") { CHECK_FALSE(choose_winner({}, kContext)); }

}  // namespace
}  // namespace cubind
