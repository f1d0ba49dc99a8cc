#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tuner/agent/device/consent_gate.hpp"
#include "tuner/agent/device/remote_device.hpp"

namespace cubind {

/// The settings from command line and environment.
struct AgentOptions {
  std::string address;                   // of the daemon: unix:///PATH, tls://HOST:PORT or HOST:PORT
  std::filesystem::path token_file;      // empty: that of the environment
  std::string agent_id;                  // default: HOST-PID and a random number
  std::filesystem::path worker_program;  // default: cubind-worker next to this executable

  std::vector<std::string>
      gpus;  // UUIDs or indices; empty: every GPU that the driver shows (CUDA_VISIBLE_DEVICES holds)
  TuneWhen tune_when = TuneWhen::Idle;
  double memory_fraction = 0;       // 0: the device worker's default
  std::string timer;                // "", "cupti" or "graph"
  std::vector<std::string> replay;  // tables; then GPUs are offered only where `gpus` names some

  std::vector<std::string> triton_pythons;  // Pythons that have Triton; none: no Triton kernel is compiled
  std::filesystem::path triton_worker;  // what they run; default: found from this executable; empty: missing

  bool allow_partial_sandbox = false;  // compile other users' sources also where the kernel lacks some of it
  unsigned compile_jobs = 1;
  std::chrono::milliseconds compile_deadline{30'000};
  DeviceDeadlines deadlines;
  std::chrono::milliseconds idle_poll{2'000};
  std::chrono::milliseconds memory_poll{10'000};
  std::optional<int> parent_pid;                            // the agent ends when this process does
  std::optional<std::chrono::milliseconds> exit_when_idle;  // the agent ends when it had no work for so long
  std::string log_level = "info";
  bool list_devices = false;  // print the GPUs of this machine as a Hello and end
};

/// Absent: help or the version was printed, or an argument was wrong (said on stderr); the process ends with
/// `exit_code`.
std::optional<AgentOptions> parse_agent_options(int argc, const char* const* argv, int& exit_code);

/// All cores, at least one.
unsigned compile_jobs_for(double cores);
/// Of these compile workers, how many are there before a job comes: all, but at most 16 for each GPU.
unsigned ready_compilers(unsigned compile_jobs, std::size_t gpus);
/// What a line of cgroup's cpu.max grants ("QUOTA PERIOD" in microseconds, or "max PERIOD"), at least one
/// core; a large number where it limits nothing.
double cores_of_quota(const std::string& cpu_max);
/// For the cores that affinity and cgroup grant.
unsigned default_compile_jobs();

}  // namespace cubind
