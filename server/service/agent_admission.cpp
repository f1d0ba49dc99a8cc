#include "server/service/agent_admission.hpp"

#include <algorithm>
#include <set>

#include "base/error.hpp"
#include "base/refuse.hpp"
#include "base/text.hpp"
#include "schemas/limits.hpp"

namespace cubind {
namespace {

std::string range(std::uint32_t oldest, std::uint32_t newest) {
  return oldest == newest ? "version " + std::to_string(newest)
                          : "versions " + std::to_string(oldest) + " to " + std::to_string(newest);
}

void check_class(const Caller& caller, const DeviceClass& device, const std::vector<DeviceClass>& known) {
  const std::string digest = device.digest.hex();
  if (covers(caller.device_classes, digest)) {
    return;
  }
  const auto found = std::ranges::find(known, device.digest, &DeviceClass::digest);
  require_device_class(caller, found == known.end() ? device.label : found->label);
  if (found == known.end() && !covers(caller.device_classes, kEverything)) {
    throw Error(
        ErrorCode::PermissionDenied, "device class " + quoted(device.label),
        "this daemon knows no such GPU yet, and a name alone does not tell: an admin of the daemon issues a "
        "token with `--device-class " +
            digest + "`");
  }
}

/// Each class is one more with which a label may be ambiguous.
void check_class_count(const AgentProfile& offer, const AgentProfiles& agents) {
  std::set<Digest> classes;
  const auto add = [&](const AgentProfile& agent) {
    for (const OfferedDevice& device : agent.devices) {
      classes.insert(device.device.digest);
    }
  };
  add(offer);
  for (const AgentProfile& agent : agents) {
    if (agent.token == offer.token && agent.id != offer.id) {
      add(agent);
    }
  }
  if (classes.size() > kMaxClassesOfToken) {
    throw Error(ErrorCode::ResourceExhausted, "devices",
                "the agents of one token would offer " + std::to_string(classes.size()) +
                    " device classes, and " + std::to_string(kMaxClassesOfToken) +
                    " are the most: give them tokens of their own");
  }
}

}  // namespace

std::uint32_t common_protocol(const v1::Hello& hello) {
  const std::uint32_t newest = hello.protocol(), oldest = hello.oldest_protocol();
  const std::uint32_t common = std::min(newest, kAgentProtocol);
  if (common < std::max(oldest, kOldestAgentProtocol)) {
    throw Error(ErrorCode::FailedPrecondition, "hello.protocol",
                "the agent speaks " + range(oldest, newest) + ", this daemon " +
                    range(kOldestAgentProtocol, kAgentProtocol) + ": upgrade the " +
                    (newest < kOldestAgentProtocol ? "agent" : "daemon"));
  }
  return common;
}

void check_offer(const Caller& caller, const AgentProfile& offer, const AgentProfiles& agents,
                 const IndexSnapshot& index) {
  std::set<std::string> uuids;
  const std::vector<DeviceClass> known = known_devices(agents, index);
  for (const OfferedDevice& device : offer.devices) {
    if (!uuids.insert(device.uuid).second) {
      refuse("devices", "has " + quoted(device.uuid) + " twice");
    }
    if (device.trial_memory_bytes > device.device.facts.memory_bytes()) {
      refuse("devices " + device.uuid, "trial_memory_bytes is above memory_bytes");
    }
    check_class(caller, device.device, known);
  }
  check_class_count(offer, agents);
}

}  // namespace cubind
