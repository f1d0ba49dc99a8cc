// What `tune` asks of the daemon: a request for each kernel.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "client/cubindctl/options.hpp"
#include "schemas/cubind.pb.h"

namespace cubind::ctl {

struct KernelTune {
  v1::TuneRequest request;
  std::vector<std::string> locations;  // of its problems, for messages: "shapes.jsonl line 4"
  std::string kernel_where;  // where a shape list first names the kernel; empty: the command line does
};

/// One request per kernel, in the order of the shape list; at least one. Throws Error(InvalidArgument) for
/// options that contradict each other, and at the file's place for a fault of the shape list.
std::vector<KernelTune> tune_requests(const TuneOptions& options);

/// Calls `ask`, a call with the request. What the daemon refuses of a problem or of a shape list's kernel is
/// thrown as an Error at its place.
void with_locations(const KernelTune& tune, const std::function<void()>& ask);

}  // namespace cubind::ctl
