#pragma once

#include <string_view>

namespace cubind {

/// A place where a test can make a process linger, so that it can be killed there. Does nothing unless the
/// environment variable CUBIND_FAILPOINTS names the place with a time in milliseconds:
/// "agent.commit=50,store.commit=20". Thread-safe.
void failpoint(std::string_view name);

}  // namespace cubind
