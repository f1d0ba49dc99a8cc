// Which agents may join, and with which devices.
#pragma once

#include <cstddef>

#include "schemas/agent.pb.h"
#include "server/access/caller.hpp"
#include "server/fleet.hpp"

namespace cubind {

inline constexpr std::size_t kMaxClassesOfToken = 64;

/// The newest protocol version that the agent and this daemon speak. Throws FailedPrecondition, with both
/// ranges and the one to upgrade, if there is none.
std::uint32_t common_protocol(const v1::Hello& hello);

/// Throws PermissionDenied for a device whose class the caller's token does not include. A label that the
/// token names stands for the classes that the daemon knows by it, since an agent may give any GPU any name.
/// A class that the daemon does not know yet must be named by its digest.
/// Throws InvalidArgument for two devices with one uuid, and for more memory than the GPU has, and
/// ResourceExhausted if the agents of one token would offer more than kMaxClassesOfToken classes.
/// `agents`: those that have joined, perhaps with an earlier offer of this one.
void check_offer(const Caller& caller, const AgentProfile& offer, const AgentProfiles& agents,
                 const IndexSnapshot& index);

}  // namespace cubind
