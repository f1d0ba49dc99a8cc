#include "server/fleet.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <tuple>

#include "base/error.hpp"
#include "base/text.hpp"

namespace cubind {
namespace {

std::string describe(const DeviceClass& device) {
  const DeviceFacts& facts = device.facts;
  return device.label + "@" + device.digest.hex().substr(0, 8) + " (" + std::to_string(facts.sm_count()) +
         " SMs, " + std::to_string(facts.memory_bytes() >> 30) + " GiB" +
         (facts.mig_profile().empty() ? "" : ", MIG " + facts.mig_profile()) + ")";
}

std::string describe(const std::vector<DeviceClass>& devices) {
  std::vector<std::string> texts;
  for (const DeviceClass& device : devices) {
    texts.push_back(describe(device));
  }
  return join(texts, ", ");
}

bool matches(const DeviceClass& device, const std::string& label) {
  const auto at = label.rfind('@');
  if (at == std::string::npos) {
    return device.label == label;
  }
  return at + 1 < label.size() && device.label == label.substr(0, at) &&
         device.digest.hex().starts_with(label.substr(at + 1));
}

}  // namespace

std::shared_ptr<const AgentProfiles> Fleet::agents() const {
  const std::lock_guard lock(mutex_);
  return agents_;
}

void Fleet::set(AgentProfiles agents) {
  auto next = std::make_shared<const AgentProfiles>(std::move(agents));
  const std::lock_guard lock(mutex_);
  agents_.swap(next);
  ++published_;
}

std::vector<DeviceClass> known_devices(const AgentProfiles& agents, const IndexSnapshot& index) {
  std::map<Digest, DeviceClass> classes = index.devices();
  classes.merge(offered_classes(agents));
  std::vector<DeviceClass> known;
  for (auto& [digest, device] : classes) {
    known.push_back(std::move(device));
  }
  std::ranges::stable_sort(known, {}, &DeviceClass::label);
  return known;
}

DeviceClass resolve_label(const std::string& label, const AgentProfiles& agents, const IndexSnapshot& index,
                          const std::string& field) {
  std::vector<DeviceClass> found;
  std::vector<std::string> labels;
  for (const DeviceClass& device : known_devices(agents, index)) {
    labels.push_back(device.label);
    if (matches(device, label)) {
      found.push_back(device);
    }
  }
  if (found.empty()) {
    throw Error(ErrorCode::NotFound, field,
                "no device class " + quoted(label) + " is known" + suggestion(label, labels));
  }
  if (found.size() == 1) {
    return found.front();
  }
  std::vector<DeviceClass> of_site;
  std::ranges::copy_if(found, std::back_inserter(of_site),
                       [counts = index.counts_by_device()](const DeviceClass& device) {
                         const auto count = counts.find(device.digest);
                         return count != counts.end() && count->second.all > count->second.shipped;
                       });
  if (of_site.size() == 1) {
    return of_site.front();
  }
  throw Error(ErrorCode::InvalidArgument, field,
              quoted(label) + " is ambiguous, name one of " + describe(found));
}

std::map<Digest, DeviceClass> offered_classes(const AgentProfiles& agents) {
  std::map<Digest, DeviceClass> classes;
  for (const OfferedDevice& device : devices_of(agents)) {
    classes.emplace(device.device.digest, device.device);
  }
  return classes;
}

DeviceClass only_offered_device(const AgentProfiles& agents, const std::string& field) {
  const std::map<Digest, DeviceClass> offered = offered_classes(agents);
  if (offered.empty()) {
    throw Error(
        ErrorCode::FailedPrecondition, field,
        no_gpu_because(agents) +
            "; name a device class (its jobs wait for an agent that has one), name a daemon with a GPU "
            "by CUBIND_ADDRESS, or let `cubind --replay TABLE` play recorded measurements");
  }
  if (offered.size() > 1) {
    std::vector<DeviceClass> classes;
    for (const auto& [digest, device] : offered) {
      classes.push_back(device);
    }
    throw Error(ErrorCode::InvalidArgument, field,
                "agents offer several classes, name one of " + describe(classes));
  }
  return offered.begin()->second;
}

std::string no_gpu_because(const AgentProfiles& agents) {
  if (agents.empty()) {
    return "no agent is connected (the daemon's log says why)";
  }
  std::set<std::string> reasons;
  for (const AgentProfile& agent : agents) {
    if (agent.devices.empty() && !agent.no_device_because.empty()) {
      reasons.insert(agent.no_device_because);
    }
  }
  return "no agent offers a GPU" + (reasons.empty() ? "" : ": " + join(reasons, "; "));
}

ToolchainNeed toolchain_need(const Question& question) {
  return toolchain_need(*question.spec, question.is_foreign, target_architecture(question),
                        question.driver ? question.driver->cuda : 0);
}

ToolchainNeed kernel_need(const Question& question) {
  return toolchain_need(*question.spec, question.is_foreign);
}

std::optional<OfferedToolchain> current_toolchain(std::span<const AgentProfile> agents,
                                                  const ToolchainNeed& need) {
  std::optional<OfferedToolchain> newest;
  for (const AgentProfile& agent : agents) {
    for (const OfferedToolchain& toolchain : agent.toolchains) {
      if (compiles(toolchain, need) &&
          (!newest || std::tie(toolchain.major, toolchain.minor) > std::tie(newest->major, newest->minor))) {
        newest = toolchain;
      }
    }
  }
  return newest;
}

std::optional<CurrentToolchain> toolchain_of_today(const AgentProfiles& agents, const ToolchainNeed& need) {
  const auto newest = current_toolchain(agents, need);
  if (!newest || newest->is_triton()) {
    return std::nullopt;
  }
  CurrentToolchain current{newest->name, {}};
  for (const AgentProfile& agent : agents) {
    for (const OfferedToolchain& toolchain : agent.toolchains) {
      if (toolchain.name != newest->name) {
        continue;
      }
      if (toolchain.nvrtc.is_zero()) {
        return CurrentToolchain{newest->name, {}};
      }
      current.builds.push_back({toolchain.nvrtc, toolchain.builtins});
    }
  }
  return current;
}

std::optional<OfferedDevice> offered_device(std::span<const AgentProfile> agents,
                                            const Digest& device_class) {
  for (const OfferedDevice& device : devices_of(agents)) {
    if (device.device.digest == device_class) {
      return device;
    }
  }
  return std::nullopt;
}

std::string no_compiler_because(const AgentProfiles& agents, const Digest& device_class,
                                const ToolchainNeed& need) {
  const auto has_device = [&](const AgentProfile& agent) {
    return std::ranges::find(agent.devices, device_class, [](const OfferedDevice& offered) {
             return offered.device.digest;
           }) != agent.devices.end();
  };
  const auto measures = [&](const AgentProfile& agent) { return has_device(agent) && may_tune(agent, need); };
  if (std::ranges::any_of(agents, measures) || std::ranges::none_of(agents, has_device)) {
    return "";
  }
  AgentProfiles with_device;
  std::ranges::copy_if(agents, std::back_inserter(with_device), has_device);
  return "no agent with such a GPU compiles it: " + no_toolchain_because(need, with_device);
}

std::optional<DriverVersion> offered_driver(const AgentProfiles& agents, const Digest& device_class) {
  const auto device = offered_device(agents, device_class);
  return device ? std::optional(device->driver) : std::nullopt;
}

}  // namespace cubind
