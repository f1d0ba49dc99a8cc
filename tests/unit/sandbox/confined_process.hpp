#pragma once

#include <functional>
#include <string>

namespace cubind::test {

/// What a process of its own writes that runs `confine` and then `attempt`: `attempt` returns 0 for success,
/// else an errno. "allowed", the name of the errno, "cannot be confined: ..." or "killed by signal N".
std::string outcome_in_process(const std::function<void()>& confine, const std::function<int()>& attempt);

}  // namespace cubind::test
