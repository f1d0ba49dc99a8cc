// Lent GPUs on the wire.
#pragma once

#include <vector>

#include "schemas/agent.pb.h"
#include "server/jobs/agent.hpp"

namespace cubind {

/// Throws InvalidArgument for a lend without a UUID, a process or a host.
LentGpu lent_gpu_from_wire(const v1::LentGpu& wire);
void to_wire(const std::vector<LentGpu>& lent, v1::Lends& wire);

}  // namespace cubind
