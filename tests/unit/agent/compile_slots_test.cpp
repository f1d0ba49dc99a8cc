#include "tuner/agent/compile/compile_slots.hpp"

#include <catch2/catch.hpp>

namespace cubind {
namespace {

TEST_CASE("compiles ahead leave one of several slots to the job that runs") {
  CompileSlots slots(2);
  CHECK(slots.try_take(CompilePriority::Ahead));
  CHECK_FALSE(slots.try_take(CompilePriority::Ahead));
  CHECK(slots.try_take(CompilePriority::Tuning));
  CHECK_FALSE(slots.try_take(CompilePriority::Tuning));
  CHECK(slots.try_take(CompilePriority::Check));
  CHECK(slots.try_take(CompilePriority::Question));
  CHECK_FALSE(slots.try_take(CompilePriority::Question));
}

TEST_CASE("a single slot serves compiles ahead while no other compile wants it") {
  CompileSlots slots(1);
  CHECK(slots.try_take(CompilePriority::Ahead));
  CHECK_FALSE(slots.try_take(CompilePriority::Tuning));
  slots.give(CompilePriority::Ahead);
  CHECK(slots.try_take(CompilePriority::Tuning));
}

TEST_CASE("compiles in the background have a quarter of the slots and at least one") {
  const auto [slots, background] =
      GENERATE(table<unsigned, unsigned>({{1, 1}, {2, 1}, {7, 1}, {8, 2}, {16, 4}}));
  CompileSlots shared(slots);
  for (unsigned i = 0; i < background; ++i) {
    CHECK(shared.try_take(CompilePriority::Background));
  }
  CHECK_FALSE(shared.try_take(CompilePriority::Background));
  shared.give(CompilePriority::Background);
  CHECK(shared.try_take(CompilePriority::Background));
}

TEST_CASE("a compile in the background takes no slot from others and begins only where one is free") {
  CompileSlots slots(2);
  CHECK(slots.try_take(CompilePriority::Background));
  CHECK(slots.try_take(CompilePriority::Tuning));
  CHECK(slots.try_take(CompilePriority::Tuning));
  CHECK_FALSE(slots.try_take(CompilePriority::Tuning));
  slots.give(CompilePriority::Background);
  CHECK_FALSE(slots.try_take(CompilePriority::Background));
  slots.give(CompilePriority::Tuning);
  CHECK(slots.try_take(CompilePriority::Background));
}

}  // namespace
}  // namespace cubind
