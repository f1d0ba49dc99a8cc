#include "tuner/agent/compile_slots.hpp"

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

TEST_CASE("a single slot serves compiles ahead while nobody else wants it") {
  CompileSlots slots(1);
  CHECK(slots.try_take(CompilePriority::Ahead));
  CHECK_FALSE(slots.try_take(CompilePriority::Tuning));
  slots.give();
  CHECK(slots.try_take(CompilePriority::Tuning));
}

}  // namespace
}  // namespace cubind
