// A kernel's requirements for a toolchain, and the offered toolchains that meet them. Only here do the
// languages of kernels differ for the daemon's choice of an agent.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "tuner/spec/keys.hpp"
#include "tuner/spec/triton_target.hpp"

namespace cubind {

struct AgentProfile;
struct OfferedToolchain;

/// Any NVRTC compiles CUDA C++. Only the Triton that made a kernel's IR, with the same ptxas, compiles a
/// Triton kernel: another version would give another kernel.
struct ToolchainNeed {
  std::optional<TritonTarget> triton = {};  // absent: the kernel is CUDA C++
  std::string architecture = {};            // empty: any, or the target's
  std::uint32_t driver_cuda = 0;            // CUDA version of the driver that loads the cubin; 0: any
  bool is_foreign = false;                  // from a user other than the daemon's: needs a complete sandbox
  bool operator==(const ToolchainNeed&) const = default;
};

ToolchainNeed toolchain_need(const KernelSpec& spec, bool is_foreign, const std::string& architecture = "",
                             std::uint32_t driver_cuda = 0);

bool compiles(const OfferedToolchain& toolchain, const ToolchainNeed& need);
/// Whether one of the agent's toolchains compiles it.
bool compiles(const AgentProfile& agent, const ToolchainNeed& need);
/// Whether an agent with a GPU gets the kernel's jobs. An agent without any toolchain gets those of CUDA C++,
/// fails them and reports where it has looked for NVRTC.
bool may_tune(const AgentProfile& agent, const ToolchainNeed& need);

/// Whether a driver for this CUDA version loads the kernel's cubins of a toolchain.
bool driver_loads(std::uint32_t driver_cuda, const KernelSpec& spec, const ToolchainIdentity& toolchain);

/// "NVRTC 12 or 13", "Triton 3.6.0 with ptxas 12.9 for sm_90".
std::string to_string(const ToolchainNeed& need);
/// Why no agent compiles the kernel, and what to do: "none has Triton 3.6.0 with ...", or the parts of the
/// sandbox that are missing for a foreign source.
std::string no_toolchain_because(const ToolchainNeed& need, std::span<const AgentProfile> agents);

}  // namespace cubind
