// The exchange between the job queue and an agent, without the wire.
#pragma once

#include <cstdint>
#include <functional>
#include <ranges>
#include <span>
#include <string>
#include <vector>

#include "server/jobs/toolchain_need.hpp"
#include "server/lookup/index.hpp"
#include "server/store/rows.hpp"
#include "tuner/spec/device_class.hpp"
#include "tuner/spec/entry_faults.hpp"
#include "tuner/spec/kernel_spec.hpp"

namespace cubind {

/// A GPU, or a replay device, on which an agent may measure.
struct OfferedDevice {
  std::string uuid;  // of the GPU, or "replay-..."
  DeviceClass device;
  DriverVersion driver;
  std::string consent;  // idle (NVML processes), idle (memory and utilization), always, never
  std::uint64_t trial_memory_bytes = 0;  // what trials may use now; 0: unknown
  /// Of a replay device: "scale N=4096,T=f32" for each problem that it can play, sorted; empty: unknown.
  std::vector<std::string> recorded = {};
};

inline bool may_measure(const OfferedDevice& device) { return !device.consent.starts_with("never"); }

/// An NVRTC or a Triton with which an agent compiles.
struct OfferedToolchain {
  std::string name;  // "nvrtc 13.0", "triton 3.6.0"
  std::uint32_t major = 0, minor = 0;
  std::vector<std::string> architectures;
  Digest nvrtc = {}, builtins = {};             // of its libraries; zero: not said
  std::vector<std::string> assemblers = {};     // of a Triton: the version of ptxas for each architecture
  std::vector<std::string> sandbox_lacks = {};  // what its host's kernel does not give to its compiles
  bool takes_foreign = true;  // compiles sources that another user than the daemon's has sent

  bool is_triton() const { return name.starts_with("triton "); }
};

/// A caller's own GPU: while the caller waits, its process does not count as another user.
struct LentGpu {
  std::string uuid;
  std::uint32_t process = 0;
  std::string host;                // where `process` is valid: as process_host()
  std::uint64_t memory_bytes = 0;  // that the process holds on it, without its context
};

/// What an agent has said of itself.
struct AgentProfile {
  std::string id;
  std::string version;
  std::vector<OfferedDevice> devices;        // empty: compiles only
  std::vector<OfferedToolchain> toolchains;  // newest first
  std::uint32_t compile_jobs = 1;
  std::string no_device_because;  // without devices
  std::string token = {};         // id of the token that it came with; empty: it needed none

  /// An agent cannot take the place of another token's agent by its id. An id of a token has no space.
  std::string key() const { return token + " " + id; }
};

/// The devices of all agents.
inline auto devices_of(std::span<const AgentProfile> agents) {
  return agents | std::views::transform(&AgentProfile::devices) | std::views::join;
}

/// A job handed to an agent, with everything that is known: nothing of it is measured, compiled or verified
/// again.
struct Lease {
  std::string id;
  std::uint64_t fence = 0;
  JobRow job;
  SpecBundle spec;
  DeviceFacts facts;
  std::string gpu_uuid;  // empty: a job that compiles
  std::uint32_t lease_ms = 0;
  std::vector<TrialRow> trials;
  std::vector<BlockRow> blocks;
  std::vector<VerificationRow> verifications;
  std::vector<ArtifactRow> artifacts;
  RecordPtr incumbent;          // the measured winner so far; null: none
  bool only_when_idle = false;  // is handed back if another process uses the GPU
  bool background = false;      // a job that measures; AgentLink::awaited() tells when that changes
};

/// A configuration to compile for CheckKernel; nothing of it is stored.
struct CheckOrder {
  std::string id;
  SpecBundle spec;
  Problem problem;
  Configuration configuration;
  ToolchainNeed needs;          // with an architecture
  DeviceConstants constants;    // for the plan
  bool with_reference = false;  // the reference kernel, where there is one, is compiled too
};

/// What became of a CheckOrder.
struct CheckOutcome {
  Outcome outcome = Outcome::Correct;
  std::string log;
  std::vector<EntryFault> faults;
  ArtifactRow artifact;  // key and toolchain digests may be empty
};

/// How far a leased job is.
struct WorkProgress {
  std::string stage;
  std::uint32_t configurations = 0, configurations_done = 0, nvrtc_calls = 0;
  double best_us = 0;
  JobState state = JobState::Running;  // or WaitingForIdleGpu
  std::string waits_because = {};      // WaitingForIdleGpu: who uses the GPU
  bool is_lent = false;                // WaitingForIdleGpu: although a caller lends the GPU
};

/// A compiled variant, with its bytes where they have not come before.
struct ArtifactUpload {
  ArtifactRow row;
  std::string zstd;  // empty: uploaded before, by PutArtifact
};

/// The rows carry what the agent knows; the queue adds kernel, device, driver, policy, series and job.
struct WorkBatch {
  std::vector<TrialRow> trials;
  std::vector<ArtifactUpload> artifacts;
  std::vector<BlockRow> blocks;
  std::vector<VerificationRow> verifications;
};

/// How a lease ended.
struct WorkResult {
  enum class Status : std::uint8_t { Done, Failed, Interrupted, Smaller };
  Status status = Status::Done;
  std::string error;
  RecordRow record;  // winner, statistics, verification, finalists; the queue adds the rest
  std::vector<OutcomeCount> outcomes;
  Problem smaller_problem;        // Smaller: what fits; `error` says what does not
  std::uint64_t needs_bytes = 0;  // Failed or Smaller, because memory was short
  std::vector<StageTime> stages;
};

/// Towards one agent. Calls do not block and do not throw; what cannot be sent is lost, and the lease with
/// it.
class AgentLink {
 public:
  virtual ~AgentLink() = default;
  virtual void grant(const Lease& lease) = 0;
  /// The job that is likely to be granted next on this GPU. The lease is none: it has neither id nor fence.
  virtual void announce(const Lease& next) = 0;
  /// A caller waits for the job of a lease that none waited for when it was granted.
  virtual void awaited(const std::string& lease_id) = 0;
  virtual void end_lease(const std::string& lease_id, const std::string& reason) = 0;
  virtual void check(const CheckOrder& order) = 0;
  virtual void drain() = 0;
  /// All of the agent's GPUs that callers lend now.
  virtual void lends(const std::vector<LentGpu>& lent) = 0;
};

}  // namespace cubind
