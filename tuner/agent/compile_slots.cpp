#include "tuner/agent/compile_slots.hpp"

namespace cubind {
namespace {

unsigned reserved_for(CompilePriority priority) {
  switch (priority) {
    case CompilePriority::Check:
      return 1;
    case CompilePriority::Question:
      return CompileSlots::kReserved;
    default:
      return 0;
  }
}

}  // namespace

bool CompileSlots::try_take(CompilePriority priority) {
  const std::lock_guard lock(mutex_);
  if (taken_ >= slots_ + reserved_for(priority)) {
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
