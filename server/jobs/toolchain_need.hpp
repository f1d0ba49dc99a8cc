// What a kernel needs of a toolchain, and which of the offered ones have it. This is the only place where the
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

/// CUDA C++ is compiled by any NVRTC. A Triton kernel is compiled by the one Triton that made its IR, with
/// the same ptxas: another one would give another kernel.
struct ToolchainNeed {
  std::optional<TritonTarget> triton = {};  // absent: the kernel is CUDA C++
  std::string architecture = {};            // empty: any, or that of the target
  std::uint32_t driver_cuda = 0;            // of the driver that loads the cubin; 0: any
  bool is_foreign = false;  // another user than the daemon's has sent the source: the sandbox must be whole
  bool operator==(const ToolchainNeed&) const = default;
};

ToolchainNeed toolchain_need(const KernelSpec& spec, bool is_foreign, const std::string& architecture = "",
                             std::uint32_t driver_cuda = 0);

bool compiles(const OfferedToolchain& toolchain, const ToolchainNeed& need);
/// Whether one of the agent's toolchains compiles it.
bool compiles(const AgentProfile& agent, const ToolchainNeed& need);
/// Whether an agent with a GPU gets the kernel's measurements. One without any toolchain gets those of CUDA
/// C++: it fails them and tells where it has looked for NVRTC.
bool may_tune(const AgentProfile& agent, const ToolchainNeed& need);

/// Whether a driver for this CUDA version loads the kernel's cubins of a toolchain.
bool driver_loads(std::uint32_t driver_cuda, const KernelSpec& spec, const ToolchainIdentity& toolchain);

/// "NVRTC 12 or 13", "Triton 3.6.0 with ptxas 12.9 for sm_90".
std::string to_string(const ToolchainNeed& need);
/// Why none of the agents compiles it, and what to do: "none has Triton 3.6.0 with ...", or what the sandbox
/// lacks for a foreign source.
std::string no_toolchain_because(const ToolchainNeed& need, std::span<const AgentProfile> agents);

}  // namespace cubind
