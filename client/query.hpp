// A question to the daemon.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "cuda_api/device_facts.hpp"
#include "plan/on_miss.hpp"
#include "plan/problem.hpp"

namespace cubind {

/// Which GPU the answer is for.
struct CurrentGpu {};  // the device of the current CUDA context, else the first visible one
struct DeviceLabel {
  std::string label;  // "nvidia-h200", as `cubindctl devices` lists it; need not be in this machine
};
struct Gpu {
  cuda::DeviceFacts facts;
  cuda::DriverVersion driver;
};
using DeviceChoice = std::variant<CurrentGpu, DeviceLabel, Gpu>;

/// What a miss starts, in addition to answering.
enum class TuneMode : std::uint8_t {
  Auto,   // a miss starts a tuning job in the background
  Never,  // a miss is counted but starts no job
  Sealed  // nor does it start a compile: if no cubin is stored, the call fails
};

/// A question. Everything but kernel and problem has a default.
struct Query {
  std::string kernel;
  Problem problem;  // parse_problem("N=4096,D=4096,T=bf16")
  DeviceChoice device = CurrentGpu{};
  OnMiss on_miss = OnMiss::Serve;
  TuneMode tune = TuneMode::Auto;
  bool warm_l2 = false;
  bool graph_launch = false;
  bool reproducible = false;  // only variants whose bits do not change from run to run
  /// A dim of the kernel, such as "N": only variants whose output rows have the same bits for every size of
  /// this dim, in each run and from each answer. Empty: no such requirement.
  std::string invariant_dim = {};
  std::string name_space = {};
  /// The training job's name, the same on all ranks. The job's first question pins a generation of the table,
  /// and all ranks get its answers. Empty: the newest generation.
  std::string job = {};
  /// Locks the answer to the generation of an earlier one, written as generation_text() in client/request.hpp
  /// does: exactly its cubin and launches, whatever was tuned since, or an error. Empty: no lock.
  std::string generation = {};
  /// The accepted departures in the form of to_string(Match): "bucket+stale", "exact"; absent: all.
  std::optional<std::string> accept = {};
  std::optional<std::chrono::milliseconds> deadline = {};  // absent: the client's
  /// With OnMiss::Wait: if this process has a primary context on the current GPU, it lends the GPU until the
  /// call ends. The call first waits for all earlier launches; until it returns, the process must launch
  /// nothing.
  bool lend = true;
  /// The bytes that the process has allocated on that GPU; needed if NVML lists no processes (in containers).
  std::uint64_t held_bytes = 0;
};

}  // namespace cubind
