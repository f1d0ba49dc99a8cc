#pragma once

#include <memory>
#include <string>
#include <vector>

#include "schemas/agent.pb.h"
#include "tuner/agent/compile_cache.hpp"
#include "tuner/agent/kernel_builds.hpp"
#include "tuner/agent/options.hpp"
#include "tuner/agent/pool_compiler.hpp"
#include "tuner/toolchain/toolchain.hpp"

namespace cubind {

/// One NVRTC with the workers that run it.
struct Tool {
  Toolchain toolchain;
  v1::Toolchain offer;  // NVRTC's version and name
  std::unique_ptr<PoolCompiler> compiler;
  std::unique_ptr<CompileCache> compiles;  // of `compiler`
  std::unique_ptr<KernelBuilds> builds;
};

/// The toolchains of this machine, newest first. Immutable once made; compilers and builds are thread-safe.
class Toolbox {
 public:
  /// Starts one worker of each toolchain for its hello. A toolchain that does not work is left out with a
  /// warning.
  Toolbox(const AgentOptions& options, const ToolchainsFound& found);

  const std::vector<Tool>& tools() const { return tools_; }
  /// The newest whose cubins a driver loads (cuDriverGetVersion; 0: any) and which knows the architecture
  /// (empty: any). Throws Error(FailedPrecondition) that lists the toolchains.
  const Tool& choose(std::uint32_t driver_cuda, const std::string& architecture) const;

 private:
  /// The text between the searched places.
  std::string no_nvrtc(std::string_view separator) const;

  std::vector<Tool> tools_;
  std::vector<std::string> searched_;  // the places and the results; for messages
};

}  // namespace cubind
