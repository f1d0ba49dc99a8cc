#include "base/periodic.hpp"

#include <atomic>
#include <catch2/catch.hpp>

namespace cubind {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

TEST_CASE("a step is repeated until it returns false") {
  std::atomic<int> steps = 0;
  const std::jthread thread = every(1ms, [&] { return ++steps < 3; });
  for (const auto end = Clock::now() + 10s; steps < 3 && Clock::now() < end;) {
    std::this_thread::sleep_for(1ms);
  }
  std::this_thread::sleep_for(20ms);
  CHECK(steps == 3);
}

TEST_CASE("the end of a periodic thread waits for no period") {
  std::atomic<int> steps = 0;
  const auto begin = Clock::now();
  {
    const std::jthread thread = every(1h, [&] { return ++steps > 0; });
  }
  CHECK(Clock::now() - begin < 1min);
  CHECK(steps == 0);
}

TEST_CASE("the end of a periodic thread waits for the step that is under way") {
  std::atomic<bool> begun = false, ended = false;
  {
    const std::jthread thread = every(1ms, [&] {
      begun = true;
      std::this_thread::sleep_for(50ms);
      return ended = true;
    });
    while (!begun) {
      std::this_thread::sleep_for(1ms);
    }
  }
  CHECK(ended);
}

}  // namespace
}  // namespace cubind
