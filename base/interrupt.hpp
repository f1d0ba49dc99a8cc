#pragma once

#include <functional>

namespace cubind {

// Asked every now and then by work that may take long; throws what ends it. Empty: it goes on.
using Interrupt = std::function<void()>;

inline void ask(const Interrupt& interrupt) {
  if (interrupt) {
    interrupt();
  }
}

}  // namespace cubind
