// A question to the daemon.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "cuda_api/device_facts.hpp"
#include "tuner/plan/on_miss.hpp"
#include "tuner/plan/problem.hpp"

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

/// What a miss does besides its answer.
enum class TuneMode : std::uint8_t {
  Auto,   // a miss starts a tuning job behind the answer
  Never,  // a miss is counted, no job is started
  Sealed  // nor a compile: without a cubin the answer is an error
};

/// A question: everything but kernel and problem may be left as it is.
struct Query {
  std::string kernel;
  Problem problem;  // parse_problem("N=4096,D=4096,T=bf16")
  DeviceChoice device = CurrentGpu{};
  OnMiss on_miss = OnMiss::Serve;
  TuneMode tune = TuneMode::Auto;
  bool warm_l2 = false;
  bool graph_launch = false;
  bool reproducible = false;  // only variants whose bits do not change from run to run
  /// A dim of the kernel, as "N": only variants whose output rows have the same bits for every size of it,
  /// from run to run and from one answer to the next. Empty: none.
  std::string invariant_dim = {};
  std::string name_space = {};
  /// The training job, by the same name on all of its ranks: the first question of a job pins a generation of
  /// the table, and all ranks get its answers. Empty: the newest there is.
  std::string job = {};
  /// Locks the answer to the generation of an earlier one, as generation_text() in client/request.hpp names
  /// it: its very cubin and launches, whatever was tuned since, or an error. Empty: no lock.
  std::string generation = {};
  /// The departures that are tolerated, as `Match` prints them ("bucket+stale", "exact"); absent: all.
  std::optional<std::string> accept = {};
  std::optional<std::chrono::milliseconds> deadline = {};  // absent: the client's
  /// With OnMiss::Wait: if this process has a primary context on the current GPU, it lends the GPU until the
  /// call ends. What it has launched is waited for; it must launch nothing meanwhile.
  bool lend = true;
  /// What the process has allocated there: needed where NVML lists no processes (in containers).
  std::uint64_t held_bytes = 0;
};

}  // namespace cubind
