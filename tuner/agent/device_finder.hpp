#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/subprocess.hpp"
#include "schemas/agent.pb.h"
#include "schemas/worker.pb.h"
#include "tuner/agent/options.hpp"

namespace cubind {

// A device that this agent may tune on.
struct LocalDevice {
  v1::OfferedDevice offer;
  v1::OpenDevice open;
  std::vector<std::string> worker_arguments;  // after `device --fd N`
};

// GPUs by a short-lived process of our own (`--list-devices`), replay devices by asking their worker.
// `--tune-when never` finds none. What does not work is left out with a warning.
std::vector<LocalDevice> find_devices(const AgentOptions& options, Spawner& spawner);

// What trials may use of the device's memory now, found as find_devices() finds it; absent: it is not found.
// Without NVML a GPU says 0.
std::optional<std::uint64_t> trial_memory_of(const std::string& uuid, const AgentOptions& options,
                                             Spawner& spawner);

// What that process prints: the GPUs as a serialized Hello. Loads the driver; makes no context.
std::string list_gpus(const std::vector<std::string>& gpus, double memory_fraction);

// "idle", "idle (processes)", "always": the rule in force; `rule` as the device worker calls it, empty where
// it is not known before the first context.
std::string consent_text(TuneWhen when, const std::string& rule);

}  // namespace cubind
