#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "schemas/agent.pb.h"
#include "tuner/agent/compile/compile_service.hpp"
#include "tuner/agent/compile/kernel_builds.hpp"
#include "tuner/agent/compile/kernel_language.hpp"
#include "tuner/agent/options.hpp"
#include "tuner/toolchain/toolchain.hpp"

namespace cubind {

/// One NVRTC or Triton with the workers that run it.
struct Tool {
  std::shared_ptr<KernelLanguage> language;
  std::unique_ptr<CompileService> compiles;
  std::unique_ptr<KernelBuilds> builds;  // of `language`

  const v1::Toolchain& offer() const { return language->offer(); }
};

/// The toolchains of this machine: NVRTC, newest first, then Triton as the options name its Pythons.
/// Immutable once made; compiles and builds are thread-safe.
class Toolbox {
 public:
  /// Starts one worker of each toolchain for its hello. A toolchain that does not work is left out with a
  /// warning.
  Toolbox(const AgentOptions& options, const ToolchainsFound& found);

  const std::vector<Tool>& tools() const { return tools_; }
  /// The first that compiles it. Throws Error(FailedPrecondition) that lists the toolchains and says what to
  /// do.
  const Tool& choose(const WantedCompiler& wanted) const;

 private:
  void add(const std::string& what, std::vector<std::string>& reasons, const std::function<Tool()>& make);
  /// "nvrtc 13.0, nvrtc 12.9"; empty: there is none.
  std::string names(bool is_triton) const;
  /// The text between the searched places.
  std::string no_nvrtc(std::string_view separator) const;
  std::string refusal(const WantedCompiler& wanted) const;
  std::string refusal_of_triton(const WantedCompiler& wanted, const TritonTarget& target) const;

  std::vector<Tool> tools_;
  // For messages.
  std::vector<std::string> searched_;          // the places of NVRTC and the results
  std::vector<std::string> left_out_tritons_;  // with the reasons
};

/// What a job of this kernel wants, for a driver (0: any) and an architecture. Throws as triton_target().
WantedCompiler wanted_compiler(const v1::SpecBundle& kernel, std::uint32_t driver_cuda,
                               const std::string& architecture);

}  // namespace cubind
