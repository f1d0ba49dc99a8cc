#include "tuner/agent/compile/toolbox.hpp"

#include <algorithm>
#include <future>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/text.hpp"

namespace cubind {
namespace {

using Slots = std::shared_ptr<CompileSlots>;

std::unique_ptr<CompileService> service_of(const AgentOptions& options, const Slots& slots,
                                           std::shared_ptr<const CompilerProgram> program) {
  CompileServiceOptions service;
  service.program = std::move(program);
  service.deadline = options.compile_deadline;
  service.slots = slots;
  return std::make_unique<CompileService>(std::move(service));
}

Tool tool_of(std::shared_ptr<KernelLanguage> language, std::unique_ptr<CompileService> compiles) {
  auto builds = std::make_unique<KernelBuilds>(language);
  return {std::move(language), std::move(compiles), std::move(builds)};
}

Tool nvrtc_tool(const AgentOptions& options, const Slots& slots, const Toolchain& toolchain) {
  auto compiles =
      service_of(options, slots, nvrtc_program(options.worker_program, toolchain.nvrtc, toolchain.builtins));
  auto language = nvrtc_language(toolchain, compiles->probe());
  return tool_of(std::move(language), std::move(compiles));
}

Tool triton_tool(const AgentOptions& options, const Slots& slots, const std::string& python) {
  if (options.triton_worker.empty()) {
    throw Error(ErrorCode::NotFound, "", "the folder triton/worker is missing next to cubind's programs");
  }
  auto compiles = service_of(options, slots, triton_program(python, options.triton_worker));
  auto language = triton_language(compiles->probe());
  return tool_of(std::move(language), std::move(compiles));
}

// "triton 3.6.0 (ptxas 12.9.86 for sm_90)".
std::string described(const v1::Toolchain& offer, const std::string& architecture) {
  const auto& known = offer.architectures();
  const auto index = std::ranges::find(known, architecture) - known.begin();
  const bool is_known = index < offer.assemblers_size();
  return offer.name() + " (" +
         (is_known ? "ptxas " + offer.assemblers(static_cast<int>(index)) : std::string("nothing")) +
         " for " + architecture + ")";
}

std::string remedy(const TritonTarget& target, bool has_version) {
  if (has_version) {
    return ". Triton brings its own ptxas: was TRITON_PTXAS_PATH set where the kernel was defined?";
  }
  return ". Install it (pip install triton==" + target.version +
         ") and start the agent with --triton-python and the path of that Python";
}

}  // namespace

Toolbox::Toolbox(const AgentOptions& options, const ToolchainsFound& found) : searched_(found.tried) {
  const auto slots = std::make_shared<CompileSlots>(options.compile_jobs);
  // A Python imports Triton for a second or two, NVRTC answers at once.
  std::vector<std::future<Tool>> tritons;
  for (const std::string& python : options.triton_pythons) {
    tritons.push_back(std::async(std::launch::async, [&] { return triton_tool(options, slots, python); }));
  }
  for (const Toolchain& toolchain : found.toolchains) {
    add(toolchain.name() + " (" + toolchain.found_in + ")", searched_,
        [&] { return nvrtc_tool(options, slots, toolchain); });
  }
  if (tools_.empty()) {
    log_error(no_nvrtc("\n  "));
  }
  for (std::size_t i = 0; i < tritons.size(); ++i) {
    add("Triton (--triton-python " + options.triton_pythons[i] + ")", left_out_tritons_,
        [&] { return tritons[i].get(); });
  }
}

void Toolbox::add(const std::string& what, std::vector<std::string>& reasons,
                  const std::function<Tool()>& make) {
  try {
    tools_.push_back(make());
    const auto& lacks = tools_.back().offer().sandbox_lacks();
    if (!lacks.empty()) {
      log_warning(what + ": the sandbox of compiles is not whole: " + join(lacks, "; "));
    }
  } catch (const Error& error) {
    const std::string left_out = what + " is left out: " + error.what();
    log_warning(left_out);
    reasons.push_back(left_out);
  }
}

std::string Toolbox::names(bool is_triton) const {
  std::vector<std::string> names;
  for (const Tool& tool : tools_) {
    if (tool.language->is_triton() == is_triton) {
      names.push_back(tool.offer().name());
    }
  }
  return join(names, ", ");
}

std::string Toolbox::no_nvrtc(std::string_view separator) const {
  return "no NVRTC 12 or 13 works on this machine: name a CUDA toolkit by CUBIND_CUDA_HOME, or install the "
         "Python wheel nvidia-cuda-nvrtc, and start the agent again. Searched:" +
         std::string(separator) + join(searched_, separator);
}

const Tool& Toolbox::choose(const WantedCompiler& wanted) const {
  const auto found =
      std::ranges::find_if(tools_, [&](const Tool& tool) { return tool.language->compiles(wanted); });
  if (found == tools_.end()) {
    throw Error(ErrorCode::FailedPrecondition, wanted.triton ? "Triton" : "NVRTC", refusal(wanted));
  }
  return *found;
}

std::string Toolbox::refusal(const WantedCompiler& wanted) const {
  if (wanted.triton) {
    return refusal_of_triton(wanted, *wanted.triton);
  }
  const std::string there_is = names(false);
  return there_is.empty()
             ? no_nvrtc("; ")
             : "none compiles" + (wanted.architecture.empty() ? "" : " for " + wanted.architecture) +
                   (wanted.driver_cuda == 0
                        ? ""
                        : " that a driver for CUDA " + std::to_string(wanted.driver_cuda) + " loads") +
                   "; there is " + there_is;
}

std::string Toolbox::refusal_of_triton(const WantedCompiler& wanted, const TritonTarget& target) const {
  const std::string needs = "the kernel is for " + target.architecture + " and needs " + target.name() +
                            " with its ptxas " + target.ptxas;
  for (const Tool& tool : tools_) {
    if (tool.language->compiles({.triton = target})) {
      return needs + ", which is there, but the job is for " + wanted.architecture +
             (wanted.driver_cuda == 0 ? "" : " and a driver for CUDA " + std::to_string(wanted.driver_cuda));
    }
  }
  std::vector<std::string> there_is;
  bool has_version = false;
  for (const Tool& tool : tools_) {
    if (tool.language->is_triton()) {
      there_is.push_back(described(tool.offer(), target.architecture));
      has_version = has_version || tool.offer().name() == target.name();
    }
  }
  if (there_is.empty()) {
    there_is.emplace_back("no Triton");
  }
  there_is.insert(there_is.end(), left_out_tritons_.begin(), left_out_tritons_.end());
  return needs + "; this agent has " + join(there_is, "; ") + remedy(target, has_version);
}

WantedCompiler wanted_compiler(const v1::SpecBundle& kernel, std::uint32_t driver_cuda,
                               const std::string& architecture) {
  return {driver_cuda, architecture, triton_target(kernel.spec_json(), kernel.file())};
}

}  // namespace cubind
