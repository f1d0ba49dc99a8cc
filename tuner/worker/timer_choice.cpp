#include "tuner/worker/timer_choice.hpp"

#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"

namespace cubind::worker {

ChosenTimer choose_timer(const std::string& wanted, const TimerMakers& makers, std::string note) {
  if (makers.cupti) {
    try {
      return {makers.cupti(), ""};
    } catch (const Error& error) {
      if (error.code() != ErrorCode::Unavailable) {
        throw;
      }
      note = error.what();
    }
  }
  if (wanted == "cupti") {
    throw Error(ErrorCode::FailedPrecondition, "open.timer", note);
  }
  if (wanted.empty()) {
    log_warning("kernels are timed by graphs of repeats: " + note);
  }
  return {makers.graph(), std::move(note)};
}

}  // namespace cubind::worker
