#include "server/jobs/toolchain_need.hpp"

#include <algorithm>
#include <iterator>
#include <set>

#include "base/text.hpp"
#include "server/jobs/agent.hpp"

namespace cubind {
namespace {

std::uint32_t cuda_major(const std::string& ptxas) { return toolchain_major({ptxas, {}, {}, {}}); }

/// The version of a Triton's ptxas for an architecture; empty: it has none.
std::string ptxas_of(const OfferedToolchain& triton, const std::string& architecture) {
  const auto found = std::ranges::find(triton.architectures, architecture);
  const auto index = static_cast<std::size_t>(found - triton.architectures.begin());
  return index < triton.assemblers.size() ? triton.assemblers[index] : "";
}

bool nvrtc_compiles(const OfferedToolchain& nvrtc, const ToolchainNeed& need) {
  return !need.triton &&
         (need.architecture.empty() || knows_architecture(nvrtc.architectures, need.architecture)) &&
         (need.driver_cuda == 0 || driver_loads(need.driver_cuda, nvrtc.major));
}

bool triton_compiles(const OfferedToolchain& triton, const ToolchainNeed& need) {
  return need.triton && triton.name == need.triton->name() &&
         (need.architecture.empty() || need.architecture == need.triton->architecture) &&
         ptxas_of(triton, need.triton->architecture) == need.triton->ptxas &&
         (need.driver_cuda == 0 || driver_loads(need.driver_cuda, cuda_major(need.triton->ptxas)));
}

std::string offer_text(const OfferedToolchain& toolchain, const std::string& architecture) {
  const std::string ptxas = ptxas_of(toolchain, architecture);
  return toolchain.name + (ptxas.empty() ? "" : " with ptxas " + ptxas);
}

// What the agents offer, each text once; an empty text is none.
template <typename Text>
std::set<std::string> offers_of(std::span<const AgentProfile> agents, const Text& text) {
  std::set<std::string> offers;
  for (const AgentProfile& agent : agents) {
    std::ranges::transform(agent.toolchains, std::inserter(offers, offers.end()), text);
  }
  offers.erase("");
  return offers;
}

std::string no_nvrtc_because(const ToolchainNeed& need, std::span<const AgentProfile> agents) {
  const std::set<std::string> there = offers_of(agents, [](const OfferedToolchain& toolchain) {
    return toolchain.is_triton() ? std::string() : toolchain.name;
  });
  if (there.empty()) {
    return "none has " + to_string(need) +
           ". Name a CUDA toolkit by CUBIND_CUDA_HOME, or install the Python wheel nvidia-cuda-nvrtc (the "
           "extra cubind[cuda13]), and start the agent again";
  }
  const std::string major = std::to_string(need.driver_cuda / 1000);
  const std::string of_driver =
      " what a driver for CUDA " + major + "." + std::to_string(need.driver_cuda % 1000 / 10) + " loads";
  return "none of " + join(there, ", ") + " compiles" +
         (need.architecture.empty() ? "" : " for " + need.architecture) +
         (need.driver_cuda == 0 ? ". Install a newer NVRTC"
                                : of_driver + ". Install an NVRTC of CUDA " + major) +
         " where an agent runs, and start the agent again";
}

// "AGENT (nvrtc 13.0): what it lacks" of each that would compile it for the daemon's own user.
std::string sandbox_lacks(const ToolchainNeed& need, std::span<const AgentProfile> agents) {
  if (!need.is_foreign) {
    return "";
  }
  ToolchainNeed own = need;
  own.is_foreign = false;
  std::vector<std::string> texts;
  for (const AgentProfile& agent : agents) {
    for (const OfferedToolchain& toolchain : agent.toolchains) {
      if (!toolchain.takes_foreign && compiles(toolchain, own)) {
        texts.push_back(agent.id + " (" + toolchain.name + "): " + join(toolchain.sandbox_lacks, "; "));
      }
    }
  }
  return join(texts, ", ");
}

}  // namespace

ToolchainNeed toolchain_need(const KernelSpec& spec, bool is_foreign, const std::string& architecture,
                             std::uint32_t driver_cuda) {
  return {spec.triton ? std::optional<TritonTarget>(*spec.triton) : std::nullopt, architecture, driver_cuda,
          is_foreign};
}

bool compiles(const OfferedToolchain& toolchain, const ToolchainNeed& need) {
  if (need.is_foreign && !toolchain.takes_foreign) {
    return false;
  }
  return toolchain.is_triton() ? triton_compiles(toolchain, need) : nvrtc_compiles(toolchain, need);
}

bool compiles(const AgentProfile& agent, const ToolchainNeed& need) {
  return std::ranges::any_of(agent.toolchains,
                             [&](const OfferedToolchain& toolchain) { return compiles(toolchain, need); });
}

bool may_tune(const AgentProfile& agent, const ToolchainNeed& need) {
  return compiles(agent, need) || (agent.toolchains.empty() && !need.triton);
}

bool driver_loads(std::uint32_t driver_cuda, const KernelSpec& spec, const ToolchainIdentity& toolchain) {
  return driver_loads(driver_cuda, spec.triton ? cuda_major(spec.triton->ptxas) : toolchain_major(toolchain));
}

std::string to_string(const ToolchainNeed& need) {
  return need.triton ? "Triton " + need.triton->version + " with ptxas " + need.triton->ptxas + " for " +
                           need.triton->architecture
                     : "NVRTC 12 or 13";
}

std::string no_toolchain_because(const ToolchainNeed& need, std::span<const AgentProfile> agents) {
  if (const std::string lacks = sandbox_lacks(need, agents); !lacks.empty()) {
    return "the source is another user's, and the sandbox of compiles is not whole on " + lacks +
           ". Run the agent where the kernel gives it, or start the agent with --allow-partial-sandbox";
  }
  if (!need.triton) {
    return no_nvrtc_because(need, agents);
  }
  const std::string none = "none has " + to_string(need);
  const std::set<std::string> offers = offers_of(agents, [&](const OfferedToolchain& toolchain) {
    return offer_text(toolchain, need.triton->architecture);
  });
  return none + (offers.empty() ? "" : " (there is " + join(offers, ", ") + ")") +
         ". Install it where an agent runs (pip install triton==" + need.triton->version +
         "), name that Python by --triton-python, and start the agent again";
}

}  // namespace cubind
