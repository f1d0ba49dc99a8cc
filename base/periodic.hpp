// A call that is repeated in the background.
#pragma once

#include <chrono>
#include <functional>
#include <thread>

namespace cubind {

/// Calls `step` once per period, first after a period, until it returns false. The destruction of the thread
/// waits for a call that is under way, and for no period.
std::jthread every(std::chrono::milliseconds period, std::function<bool()> step);

}  // namespace cubind
