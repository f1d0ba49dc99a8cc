#include "server/service/first_agent.hpp"

#include <utility>

namespace cubind {
namespace {

// An agent starts within a second or two. One that cannot start is tried again and again: its callers get
// their error.
constexpr std::chrono::seconds kPatience{10};

}  // namespace

void after_first_agent(ServiceContext& context, std::function<void()> then) {
  context.jobs.post(
      [&context, until = context.clock.steady_now() + kPatience, then = std::move(then)]() mutable {
        context.await_agent.emplace_back(until, std::move(then));
        release_from_first_agent(context);
      });
}

void release_from_first_agent(ServiceContext& context) {
  const auto now = context.clock.steady_now();
  const bool on_its_way = context.fleet.agents()->empty() && context.scheduler.agents().is_expected();
  std::vector<ServiceContext::AwaitsAgent> waiting = std::exchange(context.await_agent, {});
  for (ServiceContext::AwaitsAgent& one : waiting) {
    if (on_its_way && !context.draining && now < one.first) {
      context.await_agent.push_back(std::move(one));
    } else {
      context.jobs.post(std::move(one.second));  // not within the queue's own call
    }
  }
}

}  // namespace cubind
