#include "tuner/agent/compile_slots.hpp"

namespace cubind {
namespace {

constexpr std::chrono::milliseconds kBetweenLooks{20};

}  // namespace

bool CompileSlots::take(const std::function<bool()>& is_withdrawn) {
  std::unique_lock lock(mutex_);
  while (!given_.wait_for(lock, kBetweenLooks, [this] { return free_ > 0; })) {
    lock.unlock();
    if (is_withdrawn()) {
      return false;
    }
    lock.lock();
  }
  --free_;
  return true;
}

void CompileSlots::give() {
  {
    const std::lock_guard lock(mutex_);
    ++free_;
  }
  given_.notify_one();
}

}  // namespace cubind
