#pragma once

#include <memory>
#include <string>
#include <vector>

#include "schemas/agent.pb.h"
#include "tuner/agent/kernel_builds.hpp"
#include "tuner/agent/options.hpp"
#include "tuner/agent/pool_compiler.hpp"
#include "tuner/toolchain/toolchain.hpp"

namespace cubind {

// One NVRTC with the workers that run it.
struct Tool {
  Toolchain toolchain;
  v1::Toolchain offer;  // what NVRTC says of itself
  std::unique_ptr<PoolCompiler> compiler;
  std::unique_ptr<KernelBuilds> builds;
};

// The toolchains of this machine, newest first. Immutable once made; compilers and builds are thread-safe.
class Toolbox {
 public:
  // Starts one worker of each toolchain for its hello. A toolchain that does not work is left out with a
  // warning.
  Toolbox(const AgentOptions& options, const ToolchainsFound& found);

  const std::vector<Tool>& tools() const { return tools_; }
  // The newest whose cubins a driver loads (cuDriverGetVersion; 0: any) and which knows the architecture
  // (empty: any). Throws Error(FailedPrecondition) that says what there is.
  const Tool& choose(std::uint32_t driver_cuda, const std::string& architecture) const;

 private:
  // The text between the searched places.
  std::string no_nvrtc(std::string_view separator) const;

  std::vector<Tool> tools_;
  std::vector<std::string> searched_;  // where, and what came of it; for messages
};

}  // namespace cubind
