#include "server/service/first_agent.hpp"

#include <utility>

namespace cubind {
namespace {

constexpr std::chrono::milliseconds kLook{10};
// An agent starts within a second or two. One that cannot start is tried again and again: its callers get
// their error.
constexpr std::chrono::seconds kPatience{10};

void look(ServiceContext& context, Strand::Time until, std::function<void()> then) {
  const Strand::Time now = context.clock.steady_now();
  const bool on_its_way = context.fleet.agents()->empty() && context.scheduler.agent_expected();
  if (!on_its_way || context.draining || now >= until) {
    then();
    return;
  }
  context.jobs.post_at(now + kLook, [&context, until, then = std::move(then)]() mutable {
    look(context, until, std::move(then));
  });
}

}  // namespace

void after_first_agent(ServiceContext& context, std::function<void()> then) {
  context.jobs.post([&context, until = context.clock.steady_now() + kPatience,
                     then = std::move(then)]() mutable { look(context, until, std::move(then)); });
}

}  // namespace cubind
