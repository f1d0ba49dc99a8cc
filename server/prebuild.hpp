// Compiles winners without machine code ahead of requests: after the start, after an import, and when a GPU
// of another class is offered.
#pragma once

#include <string>
#include <vector>

#include "server/service/context.hpp"

namespace cubind {

/// The compile orders of the current records of the classes that agents offer, best record of each question,
/// that have no artifact for an offered driver. Reads the store; for the background thread.
std::vector<CompileOrder> missing_winners(ServiceContext& context);

/// The choice of the winners that are compiled ahead depends on these: the classes on offer with their
/// drivers, and the toolchains.
std::string offer_of(const AgentProfiles& agents);

/// Looks on the background thread, queues on the job thread.
void prebuild(ServiceContext& context);

}  // namespace cubind
