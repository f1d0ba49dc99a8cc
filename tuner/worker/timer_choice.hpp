// Which timer a worker measures with.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "tuner/worker/timer.hpp"

namespace cubind::worker {

struct TimerMakers {
  std::function<std::unique_ptr<Timer>()> cupti;  // empty: CUPTI is missing, denied or not wanted
  std::function<std::unique_ptr<Timer>()> graph;
};

struct ChosenTimer {
  std::unique_ptr<Timer> timer;
  std::string note;  // why it is not CUPTI; empty where it is
};

/// CUPTI where it works, else graphs of repeats, which is logged unless they were asked for. `wanted` is "",
/// "cupti" or "graph", `note` says why `cupti` is empty. Throws Error(FailedPrecondition) where CUPTI was
/// asked for and does not work; errors of the makers but Error(Unavailable) of `cupti` pass through.
ChosenTimer choose_timer(const std::string& wanted, const TimerMakers& makers, std::string note);

}  // namespace cubind::worker
