#pragma once

#include <algorithm>
#include <chrono>
#include <functional>

namespace cubind::test {

/// How long the shortest of some calls takes: that a busy machine delays one of them does not matter.
inline std::chrono::nanoseconds shortest_of(int calls, const std::function<void()>& call) {
  auto shortest = std::chrono::nanoseconds::max();
  for (int i = 0; i < calls; ++i) {
    const auto began = std::chrono::steady_clock::now();
    call();
    shortest = std::min<std::chrono::nanoseconds>(shortest, std::chrono::steady_clock::now() - began);
  }
  return shortest;
}

}  // namespace cubind::test
