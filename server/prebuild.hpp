// Compiles winners without machine code ahead of requests: after the start, after an import, and when a GPU
// of another class is offered.
#pragma once

#include "server/service/context.hpp"

namespace cubind {

/// The compile orders of the current records of the classes that agents offer, best record of each question,
/// that have no artifact for an offered driver. Reads the store; for the background thread.
std::vector<CompileOrder> missing_winners(ServiceContext& context);

/// Looks on the background thread, queues on the job thread.
void prebuild(ServiceContext& context);

}  // namespace cubind
