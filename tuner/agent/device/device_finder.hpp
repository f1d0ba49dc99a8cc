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

/// A device that this agent may tune on.
struct LocalDevice {
  v1::OfferedDevice offer;
  v1::OpenDevice open;
  std::vector<std::string> worker_arguments;    // after `device --fd N`
  std::vector<std::string> worker_environment;  // in addition to this process's own
};

/// This machine's devices as this agent's options select them, or why there are none.
struct FoundDevices {
  std::vector<LocalDevice> devices;
  std::string none_because;  // without devices: one line of UTF-8
};

/// GPUs by a short-lived process of our own (`--list-devices`), replay devices by asking their worker.
/// `--tune-when never` finds none. A table that does not work is left out with a message in the log, so are
/// all GPUs where a driver does not answer within the deadline for opening a device, or until `stop`.
FoundDevices find_devices(const AgentOptions& options, Spawner& spawner, const std::stop_token& stop = {});

/// What a GPU's worker runs with: it sees no other GPU, for the driver starts each that it sees, and has one
/// connection to it, because a context takes longer to make with the eight that it has by default (H200:
/// 0.10 s, with one 0.055 s) and a worker has one stream.
std::vector<std::string> gpu_environment(const std::string& uuid);

/// The memory of each device that trials may use now, by UUID, found as find_devices() finds it. Devices that
/// are not found are left out. Without NVML a GPU says 0.
std::map<std::string, std::uint64_t> trial_memory(const AgentOptions& options, Spawner& spawner,
                                                  const std::stop_token& stop);

/// All that the child writes until it closes its end. Absent, and the child killed: at `deadline` or `stop`.
std::optional<std::string> output_of(Subprocess& child, std::chrono::steady_clock::time_point deadline,
                                     const std::stop_token& stop);

/// The output of that process: the GPUs, or why there are none, as a serialized FoundGpus. Loads the driver;
/// makes no context. Throws Error(NotFound) for a missing one of `gpus`, and the errors of a broken driver.
std::string list_gpus(const std::vector<std::string>& gpus, double memory_fraction);

/// "idle", "idle (processes)", "always": the rule in force; `rule` as the device worker calls it, empty where
/// it is not known before the first context.
std::string consent_text(TuneWhen when, const std::string& rule);

}  // namespace cubind
