// The connected agents and their offers, as a snapshot for any thread, and the facts that follow from it.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "server/jobs/agent.hpp"
#include "server/lookup/lookup.hpp"

namespace cubind {

using AgentProfiles = std::vector<AgentProfile>;

/// Thread-safe.
class Fleet {
 public:
  Fleet() : agents_(std::make_shared<AgentProfiles>()) {}

  std::shared_ptr<const AgentProfiles> agents() const;
  /// The number of snapshots so far. If it is read before agents(), it is no newer than that snapshot.
  std::uint64_t published() const { return published_; }
  void set(AgentProfiles agents);

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const AgentProfiles> agents_;  // guarded by mutex_
  std::atomic<std::uint64_t> published_{0};      // grows under mutex_
};

/// Every class that is known, from agents, records and tables, by label.
std::vector<DeviceClass> known_devices(const AgentProfiles& agents, const IndexSnapshot& index);

/// The known class with this label ("nvidia-h200", or "nvidia-h200@1a2b" with the start of its digest). If
/// several have it, the one that has records of this site: an agent may give any GPU any name. Throws
/// NotFound with the known labels, or InvalidArgument with the classes if that does not decide; `field` is
/// the place.
DeviceClass resolve_label(const std::string& label, const AgentProfiles& agents, const IndexSnapshot& index,
                          const std::string& field);

/// The classes that agents offer, by digest.
std::map<Digest, DeviceClass> offered_classes(const AgentProfiles& agents);

/// The one class that agents offer. Throws FailedPrecondition if there is none, InvalidArgument with the list
/// if there are several.
DeviceClass only_offered_device(const AgentProfiles& agents, const std::string& field);

/// Why agents offer no GPU, if they offer none: "no agent offers a GPU: " and what each says of itself.
std::string no_gpu_because(const AgentProfiles& agents);

/// What compiling for the question's device and driver needs.
ToolchainNeed toolchain_need(const Question& question);
/// What compiling its kernel for any device and driver needs.
ToolchainNeed kernel_need(const Question& question);

/// The newest toolchain that compiles it; absent if no agent offers one.
std::optional<OfferedToolchain> current_toolchain(std::span<const AgentProfile> agents,
                                                  const ToolchainNeed& need);

/// The same, in every build that an agent offers. Absent for a Triton kernel too: it names its toolchain, so
/// that none is a later one.
std::optional<CurrentToolchain> toolchain_of_today(const AgentProfiles& agents, const ToolchainNeed& need);

/// An agent's device of this class: the first.
std::optional<OfferedDevice> offered_device(std::span<const AgentProfile> agents, const Digest& device_class);

/// Why a kernel is not measured though agents offer the device class: none of these agents compiles it.
/// Empty: one does, or none offers the class.
std::string no_compiler_because(const AgentProfiles& agents, const Digest& device_class,
                                const ToolchainNeed& need);

/// The driver of an agent's device of this class.
std::optional<DriverVersion> offered_driver(const AgentProfiles& agents, const Digest& device_class);

}  // namespace cubind
