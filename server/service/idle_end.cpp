#include "server/service/idle_end.hpp"

#include <utility>

namespace cubind {

IdleEnd::IdleEnd(ServiceContext& context, std::function<void()> end)
    : context_(context), end_(std::move(end)), last_(context.clock.steady_now()) {}

std::shared_ptr<IdleEnd> IdleEnd::start(ServiceContext& context, std::function<void()> end) {
  std::shared_ptr<IdleEnd> started(new IdleEnd(context, std::move(end)));
  started->look_again();
  return started;
}

void IdleEnd::look_again() {
  context_.jobs.post_at(last_.load() + context_.longest_pause, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) {
      return;
    }
    if (self->context_.clock.steady_now() >= self->last_.load() + self->context_.longest_pause) {
      self->end_();
    } else {
      self->look_again();
    }
  });
}

}  // namespace cubind
