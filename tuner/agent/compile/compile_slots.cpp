#include "tuner/agent/compile/compile_slots.hpp"

#include <algorithm>

namespace cubind {
namespace {

constexpr unsigned kReserved = 2;  // for checks and questions

unsigned slots_for(CompilePriority priority, unsigned slots) {
  switch (priority) {
    case CompilePriority::Ahead:
      return slots > 1 ? slots - 1 : slots;
    case CompilePriority::Check:
      return slots + 1;
    case CompilePriority::Question:
      return slots + kReserved;
    default:
      return slots;
  }
}

}  // namespace

unsigned CompileSlots::most() const { return slots_ + kReserved; }

unsigned CompileSlots::most_in_background() const { return std::max(slots_ / 4, 1U); }

bool CompileSlots::try_take(CompilePriority priority) {
  const std::lock_guard lock(mutex_);
  if (priority == CompilePriority::Background) {
    if (in_background_ >= most_in_background() || taken_ + in_background_ >= slots_) {
      return false;
    }
    ++in_background_;
    return true;
  }
  if (taken_ >= slots_for(priority, slots_)) {
    return false;
  }
  ++taken_;
  return true;
}

void CompileSlots::give(CompilePriority priority) {
  const std::lock_guard lock(mutex_);
  --(priority == CompilePriority::Background ? in_background_ : taken_);
}

}  // namespace cubind
