#include "tuner/agent/compile_slots.hpp"

namespace cubind {
namespace {

unsigned slots_for(CompilePriority priority, unsigned slots) {
  switch (priority) {
    case CompilePriority::Ahead:
      return slots > 1 ? slots - 1 : slots;
    case CompilePriority::Check:
      return slots + 1;
    case CompilePriority::Question:
      return slots + CompileSlots::kReserved;
    default:
      return slots;
  }
}

}  // namespace

bool CompileSlots::try_take(CompilePriority priority) {
  const std::lock_guard lock(mutex_);
  if (taken_ >= slots_for(priority, slots_)) {
    return false;
  }
  ++taken_;
  return true;
}

void CompileSlots::give() {
  const std::lock_guard lock(mutex_);
  --taken_;
}

}  // namespace cubind
