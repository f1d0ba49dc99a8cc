#pragma once

#include <functional>

namespace cubind {

/// Long work calls it every now and then; it throws to end the work. Empty: the work goes on.
using Interrupt = std::function<void()>;

inline void ask(const Interrupt& interrupt) {
  if (interrupt) {
    interrupt();
  }
}

}  // namespace cubind
