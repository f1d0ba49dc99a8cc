#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <stop_token>
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
// `--tune-when never` finds none. What does not work is left out with a warning, so are the GPUs of a driver
// that does not answer within the deadline for opening a device, or until `stop`.
std::vector<LocalDevice> find_devices(const AgentOptions& options, Spawner& spawner,
                                      const std::stop_token& stop = {});

// What trials may use of each device's memory now, by UUID, found as find_devices() finds it; what is not found
// is not in it. Without NVML a GPU says 0.
std::map<std::string, std::uint64_t> trial_memory(const AgentOptions& options, Spawner& spawner,
                                                  const std::stop_token& stop);

// All that the child writes until it closes its end. Absent, and the child killed: at `deadline` or `stop`.
std::optional<std::string> output_of(Subprocess& child, std::chrono::steady_clock::time_point deadline,
                                     const std::stop_token& stop);

// What that process prints: the GPUs as a serialized Hello. Loads the driver; makes no context.
std::string list_gpus(const std::vector<std::string>& gpus, double memory_fraction);

// "idle", "idle (processes)", "always": the rule in force; `rule` as the device worker calls it, empty where
// it is not known before the first context.
std::string consent_text(TuneWhen when, const std::string& rule);

}  // namespace cubind
