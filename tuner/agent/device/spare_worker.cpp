#include "tuner/agent/device/spare_worker.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"

namespace cubind {
namespace {

constexpr std::chrono::seconds kLongestPause{60};

}  // namespace

void SpareWorker::keep(Clock::time_point now) {
  if (spare_) {
    const auto ended = spare_->process.try_wait();
    if (!ended) {
      return;
    }
    spare_.reset();
    pause(now, ended->describe());
  }
  if (now < not_before_) {
    return;
  }
  try {
    spare_ = starter_.start();
  } catch (const Error& error) {
    pause(now, error.what());
  }
}

std::optional<WorkerProcess> SpareWorker::take() {
  std::optional<WorkerProcess> taken = std::exchange(spare_, std::nullopt);
  if (!taken || taken->process.try_wait()) {
    return std::nullopt;
  }
  ends_ = 0;
  return taken;
}

void SpareWorker::pause(Clock::time_point now, const std::string& why) {
  const auto pause = std::min(std::chrono::seconds(1) * (1U << std::min(ends_, 6U)), kLongestPause);
  ++ends_;
  not_before_ = now + pause;
  log_warning("a spare device worker ended: " + why + "; the next one starts in " +
              std::to_string(pause.count()) + " s");
}

}  // namespace cubind
