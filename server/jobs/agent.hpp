// The exchange between the job queue and an agent, without the wire.
#pragma once

#include <cstdint>
#include <functional>
#include <ranges>
#include <span>
#include <string>
#include <vector>

#include "schemas/agent.pb.h"
#include "server/jobs/toolchain_need.hpp"
#include "server/lookup/index.hpp"
#include "server/store/rows.hpp"
#include "tuner/spec/device_class.hpp"
#include "tuner/spec/kernel_spec.hpp"

namespace cubind {

/// A GPU, or a replay device, on which an agent may measure.
struct OfferedDevice {
  std::string uuid;  // of the GPU, or "replay-..."
  DeviceClass device;
  DriverVersion driver;
  std::string consent;  // idle (NVML processes), idle (memory and utilization), always, never
  std::uint64_t trial_memory_bytes = 0;  // available to trials now; 0: unknown
  /// For a replay device: "scale N=4096,T=f32" for each problem that it can play, sorted; empty: unknown.
  std::vector<std::string> recorded = {};
};

inline bool may_measure(const OfferedDevice& device) { return !device.consent.starts_with("never"); }

/// An NVRTC or Triton that an agent compiles with.
struct OfferedToolchain {
  std::string name;  // "nvrtc 13.0", "triton 3.6.0"
  std::uint32_t major = 0, minor = 0;
  std::vector<std::string> architectures;
  Digest nvrtc = {}, builtins = {};             // digests of its libraries; zero: unknown
  std::vector<std::string> assemblers = {};     // Triton: the version of ptxas for each architecture
  std::vector<std::string> sandbox_lacks = {};  // parts of the sandbox that its host's kernel lacks
  bool takes_foreign = true;                    // compiles sources of users other than the daemon's

  bool is_triton() const { return name.starts_with("triton "); }
};

/// A caller's GPU: while the caller waits, its process does not count as another user.
struct LentGpu {
  std::string uuid;
  std::uint32_t process = 0;
  std::string host;                // where `process` is valid, as from process_host()
  std::uint64_t memory_bytes = 0;  // bytes that the process holds on it, without its context
};

/// An agent's description of itself.
struct AgentProfile {
  std::string id;
  std::string version;
  std::vector<OfferedDevice> devices;        // empty: compiles only
  std::vector<OfferedToolchain> toolchains;  // newest first
  std::uint32_t compile_jobs = 1;
  std::string no_device_because;  // why it has no devices
  std::string token = {};         // id of its token; empty: it needed none

  /// Identifies the agent. It contains the token, so that an agent with another token cannot use this agent's
  /// id. A token's id has no space.
  std::string key() const { return token + " " + id; }
};

/// The devices of all agents.
inline auto devices_of(std::span<const AgentProfile> agents) {
  return agents | std::views::transform(&AgentProfile::devices) | std::views::join;
}

/// A job given to an agent with all known results, which the agent does not measure, compile or verify again.
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
  bool only_when_idle = false;  // handed back if another process uses the GPU
  bool background = false;      // measures while no caller waits; AgentLink::awaited() ends this
};

/// A configuration to compile for CheckKernel; nothing of it is stored.
struct CheckOrder {
  std::string id;
  SpecBundle spec;
  Problem problem;
  Configuration configuration;
  ToolchainNeed needs;        // with an architecture
  DeviceConstants constants;  // for the plan
};

/// A compiled variant, with its bytes unless they were uploaded before.
struct ArtifactUpload {
  ArtifactRow row;
  std::string zstd;  // empty: uploaded before, by PutArtifact
};

/// Rows with the facts that the agent knows; the queue adds kernel, device, driver, policy, series and job.
struct WorkBatch {
  std::vector<TrialRow> trials;
  std::vector<ArtifactUpload> artifacts;
  std::vector<BlockRow> blocks;
  std::vector<VerificationRow> verifications;
};

/// The end of a lease.
struct WorkResult {
  v1::JobResult told;       // status, error, outcomes, stages, bytes needed
  RecordRow record;         // winner, statistics, verification, finalists; the queue adds the rest
  Problem smaller_problem;  // SMALLER: the problem that fits; `error` names the one that does not
};

/// The queue's messages to one agent. Calls do not block or throw; if a message cannot be sent, it is lost,
/// and the lease with it.
class AgentLink {
 public:
  virtual ~AgentLink() = default;
  virtual void grant(const Lease& lease) = 0;
  /// Announces the job that is likely to be granted next on this GPU. `next` grants nothing: it has neither
  /// id nor fence.
  virtual void announce(const Lease& next) = 0;
  /// A caller now waits for the job, which no caller waited for when it was leased.
  virtual void awaited(const std::string& lease_id) = 0;
  virtual void end_lease(const std::string& lease_id, const std::string& reason) = 0;
  virtual void check(const CheckOrder& order) = 0;
  virtual void drain() = 0;
  /// Sends all current lends of the agent's GPUs.
  virtual void lends(const std::vector<LentGpu>& lent) = 0;
};

}  // namespace cubind
