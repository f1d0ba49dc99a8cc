// Calls that need an agent and come while the daemon's own is still starting.
#pragma once

#include <functional>

#include "server/service/context.hpp"

namespace cubind {

/// Calls `then` on the job thread: as soon as an agent is connected, none is on its way any more, or the
/// daemon shuts down; after 10 s at the latest. From any thread.
void after_first_agent(ServiceContext& context, std::function<void()> then);

/// Posts the calls that are due. On the job thread: when agents have changed, while draining, and now and
/// then.
void release_from_first_agent(ServiceContext& context);

}  // namespace cubind
