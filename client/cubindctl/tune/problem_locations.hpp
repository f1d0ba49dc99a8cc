// Where the problems of a request come from, for messages.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace cubind::ctl {

/// Calls `ask`, a call about problems that were given at these places ("shapes.jsonl line 4"), in this order.
/// What is refused of a problem ("problems[3].dims: ..."; of the only one also "problem.dims: ...") is thrown
/// as an Error at the problem's place.
void with_locations(const std::vector<std::string>& locations, const std::function<void()>& ask);

}  // namespace cubind::ctl
