#include "tuner/worker/consent.hpp"

#include <catch2/catch.hpp>

namespace cubind::worker {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kOurContext = 600 * kMiB;

bool is_foreign(const Consent& consent, const GpuUse& now, std::uint64_t own_allocated, bool idle,
                const Lend& lend = {}) {
  return !consent.others(now, own_allocated, idle, lend).empty();
}

TEST_CASE("a GPU without processes is free") { CHECK_FALSE(is_foreign(Consent({}), {}, 0, true)); }

TEST_CASE("a listed process is foreign before we have a context") {
  const GpuUse busy{.processes = {4711}};
  CHECK(is_foreign(Consent(busy), busy, 0, true));
  CHECK(Consent(busy).rule() == "processes");
}

TEST_CASE("our own process is the newcomer of the list whatever its number") {
  Consent consent({});
  consent.context_made({.processes = {99}, .memory_bytes = kOurContext});
  CHECK(consent.rule() == "processes");
  CHECK_FALSE(is_foreign(consent, {.processes = {99}, .memory_bytes = 50'000 * kMiB}, 0, true));
  CHECK(is_foreign(consent, {.processes = {99, 100}}, 0, true));
}

TEST_CASE("a process that was there before stays foreign") {
  const GpuUse before{.processes = {50}};
  Consent consent(before);
  consent.context_made({.processes = {50, 99}});
  CHECK(is_foreign(consent, {.processes = {50, 99}}, 0, true));
  CHECK_FALSE(is_foreign(consent, {.processes = {99}}, 0, true));
}

TEST_CASE("of two newcomers the one with the larger number is ours and the other is foreign") {
  Consent consent({});
  consent.context_made({.processes = {99, 70}});
  CHECK(is_foreign(consent, {.processes = {99, 70}}, 0, true));
  CHECK(is_foreign(consent, {.processes = {70}}, 0, true));
  CHECK_FALSE(is_foreign(consent, {.processes = {99}}, 0, true));
}

TEST_CASE("where no process is listed memory beyond our own is foreign") {
  Consent consent({});
  consent.context_made({.memory_bytes = kOurContext});
  CHECK(consent.rule() == "memory and utilization");
  CHECK_FALSE(is_foreign(consent, {.memory_bytes = kOurContext + 4000 * kMiB}, 4000 * kMiB, false));
  CHECK(is_foreign(consent, {.memory_bytes = kOurContext + 4600 * kMiB}, 4000 * kMiB, false));
}

TEST_CASE("where no process is listed and the GPU is busy while we are idle little memory is enough") {
  Consent consent({});
  consent.context_made({.memory_bytes = kOurContext});
  const GpuUse busy{.memory_bytes = kOurContext + 100 * kMiB, .utilization_percent = 60};
  CHECK(is_foreign(consent, busy, 0, true));
  CHECK_FALSE(is_foreign(consent, busy, 0, false));
  CHECK_FALSE(
      is_foreign(consent, {.memory_bytes = kOurContext + 100 * kMiB, .utilization_percent = 0}, 0, true));
}

TEST_CASE("a GPU without a context is free though NVML still shows the work of one that has ended") {
  CHECK_FALSE(is_foreign(Consent({}), {.memory_bytes = kMiB, .utilization_percent = 60}, 0, true));
}

TEST_CASE("where no process is listed memory in use before our context is foreign") {
  CHECK(is_foreign(Consent({}), {.memory_bytes = 2000 * kMiB}, 0, true));
  CHECK_FALSE(is_foreign(Consent({}), {.memory_bytes = 4 * kMiB}, 0, true));
}

// ---- A lent GPU ----

Lend lent_by(std::uint32_t process, std::uint64_t bytes = 0, bool rested = false) {
  return {{{process, bytes}}, rested};
}

TEST_CASE("a process that lends the GPU is not foreign and others are") {
  const GpuUse before{.processes = {50}};
  Consent consent(before);
  CHECK_FALSE(is_foreign(consent, before, 0, true, lent_by(50)));
  CHECK(is_foreign(consent, {.processes = {50, 60}}, 0, true, lent_by(50)));
  consent.context_made({.processes = {50, 99}}, lent_by(50));
  CHECK_FALSE(is_foreign(consent, {.processes = {50, 99}}, 0, true, lent_by(50)));
  CHECK(is_foreign(consent, {.processes = {50, 60, 99}}, 0, true, lent_by(50)));
  CHECK(is_foreign(consent, {.processes = {50, 99}}, 0, true));
}

TEST_CASE("several processes may lend the GPU") {
  const Lend both{{{50, 0}, {60, 0}}, false};
  const GpuUse now{.processes = {50, 60}};
  CHECK_FALSE(is_foreign(Consent(now), now, 0, true, both));
  CHECK(is_foreign(Consent(now), now, 0, true, lent_by(60)));
}

TEST_CASE("a lender whose context appears with ours is not taken for ours") {
  Consent consent({});
  consent.context_made({.processes = {99, 120}}, lent_by(120));
  CHECK_FALSE(is_foreign(consent, {.processes = {99}}, 0, true));
  CHECK(is_foreign(consent, {.processes = {99, 120}}, 0, true));
}

TEST_CASE("a lender that NVML lists under another number is foreign and the reason names both") {
  const GpuUse before{.processes = {7001}};
  const std::string why = Consent(before).others(before, 0, true, lent_by(12));
  CHECK(why ==
        "process 7001 uses the GPU (end it, or tune from within it); NVML does not list process 12, which "
        "lends it: it has no context, "
        "or its number is another one there");
}

TEST_CASE("where no process is listed a lender explains the memory that it states and that of a context") {
  const std::uint64_t held = 40'000 * kMiB;
  const GpuUse before{.memory_bytes = held + 500 * kMiB};
  Consent consent(before);
  CHECK(is_foreign(consent, before, 0, true));
  CHECK_FALSE(is_foreign(consent, before, 0, true, lent_by(50, held)));
  CHECK(is_foreign(consent, {.memory_bytes = held + 2000 * kMiB}, 0, true, lent_by(50, held)));
}

TEST_CASE("where no process is listed the end of a lend that was there before our context is seen") {
  const std::uint64_t theirs = 700 * kMiB;
  Consent consent({.memory_bytes = theirs});
  const Lend lend = lent_by(50, 200 * kMiB);
  const GpuUse now{.memory_bytes = theirs + kOurContext + 4000 * kMiB};
  consent.context_made({.memory_bytes = theirs + kOurContext}, lend);
  CHECK_FALSE(is_foreign(consent, now, 4000 * kMiB, false, lend));
  CHECK(is_foreign(consent, now, 4000 * kMiB, false));
}

TEST_CASE("where no process is listed the memory of a lender is not counted twice") {
  const std::uint64_t held = 10'000 * kMiB;
  const Lend lend = lent_by(50, held);
  Consent consent({.memory_bytes = held + 500 * kMiB});
  consent.context_made({.memory_bytes = held + 500 * kMiB + kOurContext}, lend);
  const GpuUse with_another{.memory_bytes = held + 500 * kMiB + kOurContext + 3000 * kMiB};
  CHECK(is_foreign(consent, with_another, 0, false, lend));
}

TEST_CASE("where no process is listed a lender that comes after our context is not foreign") {
  Consent consent({});
  consent.context_made({.memory_bytes = kOurContext});
  const GpuUse now{.memory_bytes = kOurContext + 2500 * kMiB};
  CHECK_FALSE(is_foreign(consent, now, 0, false, lent_by(50, 2000 * kMiB)));
  CHECK(is_foreign(consent, now, 0, false));
}

TEST_CASE("a lent GPU that is busy while we are idle is in use whatever the rule") {
  const GpuUse listed{.processes = {50}, .utilization_percent = 60};
  const GpuUse unlisted{.memory_bytes = 500 * kMiB, .utilization_percent = 60};
  for (const GpuUse& now : {listed, unlisted}) {
    CHECK(is_foreign(Consent(now), now, 0, true, lent_by(50, 0, true)));
    CHECK_FALSE(is_foreign(Consent(now), now, 0, false, lent_by(50, 0, true)));
  }
}

TEST_CASE("right after a lend began the GPU may still show as busy what the lender did before") {
  const GpuUse now{.processes = {50}, .utilization_percent = 60};
  CHECK_FALSE(is_foreign(Consent(now), now, 0, true, lent_by(50, 0, false)));
}

TEST_CASE("a statement of all memory there is does not overflow") {
  const GpuUse now{.memory_bytes = 1000 * kMiB};
  const Lend boasts{{{50, UINT64_MAX}, {51, UINT64_MAX}}, false};
  CHECK_FALSE(is_foreign(Consent(now), now, 0, false, boasts));
}

// ---- Idle processes of our user ----

using std::chrono::milliseconds;
using std::chrono::seconds;

GpuUse idle_for(milliseconds idle, std::vector<std::uint32_t> processes = {50}) {
  return {.processes = std::move(processes), .memory_bytes = 40'000 * kMiB, .idle = {{50, idle}}};
}

TEST_CASE("a process that has been idle for long enough is not foreign and its memory is none of others") {
  const GpuUse before = idle_for(seconds(10));
  CHECK_FALSE(is_foreign(Consent(before), before, 0, true));
  CHECK(is_foreign(Consent(before), idle_for(seconds(10) - milliseconds(1)), 0, true));
  CHECK(is_foreign(Consent(before), {.processes = {50}}, 0, true));
}

TEST_CASE("a process that works again is foreign until it is idle again") {
  const GpuUse before = idle_for(milliseconds::max());
  Consent consent(before);
  consent.context_made(idle_for(milliseconds::max(), {50, 99}));
  CHECK_FALSE(is_foreign(consent, idle_for(seconds(11), {50, 99}), 0, false));
  CHECK(consent.others(idle_for(milliseconds(200), {50, 99}), 0, false) ==
        "process 50 uses the GPU (end it, tune from within it, or leave it idle for 10 s more)");
  CHECK(consent.others(idle_for(milliseconds(9'001), {50, 99}), 0, false) ==
        "process 50 uses the GPU (end it, tune from within it, or leave it idle for 1 s more)");
  CHECK_FALSE(is_foreign(consent, idle_for(seconds(10), {50, 99}), 0, false));
}

TEST_CASE("a process that comes after our context is foreign however idle it is") {
  Consent consent({});
  consent.context_made({.processes = {99}});
  CHECK(consent.others(idle_for(milliseconds::max(), {50, 99}), 0, true) ==
        "process 50 uses the GPU (end it, or tune from within it)");
}

TEST_CASE("other processes than the idle one are foreign") {
  const GpuUse before = idle_for(seconds(20), {50, 60});
  CHECK(Consent(before).others(before, 0, true) ==
        "process 60 uses the GPU (end it, or tune from within it)");
}

TEST_CASE("a GPU that is busy while we and an idle process are idle is in use") {
  GpuUse busy = idle_for(seconds(20));
  busy.utilization_percent = 60;
  CHECK(is_foreign(Consent(busy), busy, 0, true));
  CHECK_FALSE(is_foreign(Consent(busy), busy, 0, false));
}

TEST_CASE("next to an idle process a lender may still show as busy what it did before the lend") {
  GpuUse busy = idle_for(seconds(20), {50, 60});
  busy.utilization_percent = 60;
  CHECK_FALSE(is_foreign(Consent(busy), busy, 0, true, lent_by(60, 0, false)));
  CHECK(is_foreign(Consent(busy), busy, 0, true, lent_by(60, 0, true)));
}

TEST_CASE("where our context is not listed an idle process explains no memory") {
  Consent consent(idle_for(seconds(20)));
  consent.context_made(idle_for(seconds(20)));
  CHECK(is_foreign(consent, idle_for(seconds(20)), 0, true));
}

}  // namespace
}  // namespace cubind::worker
