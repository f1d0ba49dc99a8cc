#include "tuner/agent/device/consent_gate.hpp"

#include "base/error.hpp"

namespace cubind {

void ConsentGate::enter() {
  remote_.probe();
  if (remote_.foreign_use() && (gives_way() || !remote_.has_info())) {
    wait_until_idle();
  }
}

void ConsentGate::wait_until_idle() {
  do {
    progress_.waits(remote_.foreign_because(), remote_.is_lent());
    // A worker that only looks takes no memory, but its context does: it has none between two looks.
    remote_.restart();
    if (options_.only_when_idle) {
      throw Error(ErrorCode::Unavailable, "GPU", "another process uses it");
    }
    stop_.wait_for(options_.poll);
    stop_.check_between_trials();
    remote_.probe();
  } while (remote_.foreign_use() && (gives_way() || !remote_.has_info()));
  progress_.runs();
}

}  // namespace cubind
