// The end of a stream whose caller does not go on.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>

#include "server/service/context.hpp"

namespace cubind {

/// Calls `end` once, on the job thread, when the caller has not gone on for ServiceContext::longest_pause;
/// never after it was destroyed.
class IdleEnd : public std::enable_shared_from_this<IdleEnd> {
 public:
  static std::shared_ptr<IdleEnd> start(ServiceContext& context, std::function<void()> end);
  /// From any thread.
  void went_on() { last_ = context_.clock.steady_now(); }

 private:
  IdleEnd(ServiceContext& context, std::function<void()> end);
  void look_again();

  ServiceContext& context_;
  const std::function<void()> end_;
  std::atomic<std::chrono::steady_clock::time_point> last_;
};

}  // namespace cubind
