#include "server/fair_strand.hpp"

#include <utility>

namespace cubind {

bool FairStrand::post(const std::string& caller, Strand::Function function) {
  {
    const std::lock_guard lock(mutex_);
    waiting_[caller].push_back(std::move(function));
  }
  if (strand_.post([this] { run_next(); })) {
    return true;
  }
  std::map<std::string, std::deque<Strand::Function>> dropped;  // destroyed without the lock
  const std::lock_guard lock(mutex_);
  waiting_.swap(dropped);
  return false;
}

void FairStrand::run_next() {
  Strand::Function function;
  {
    const std::lock_guard lock(mutex_);
    auto next = waiting_.upper_bound(last_);
    next = next == waiting_.end() ? waiting_.begin() : next;
    if (next == waiting_.end()) {
      return;
    }
    last_ = next->first;
    function = std::move(next->second.front());
    next->second.pop_front();
    if (next->second.empty()) {
      waiting_.erase(next);
    }
  }
  function();
}

}  // namespace cubind
