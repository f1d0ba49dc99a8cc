// The daemon's state as families of Prometheus's metrics; docs/daemon.md lists them.
#pragma once

#include <prometheus/metric_family.h>

#include <vector>

#include "server/service/context.hpp"

namespace cubind {

/// The same families each time, also those without a sample now. Labels have few values: none comes from a
/// caller. Waits for the job thread, so do not call it there. Throws the store's errors.
std::vector<prometheus::MetricFamily> metric_families(ServiceContext& context);

}  // namespace cubind
