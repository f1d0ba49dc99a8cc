#include "base/signals.hpp"

namespace cubind {

sigset_t signal_set(std::initializer_list<int> signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) {
    sigaddset(&set, signal);
  }
  return set;
}

sigset_t block_signals(std::initializer_list<int> signals) {
  const sigset_t set = signal_set(signals);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  return set;
}

}  // namespace cubind
