#include "tuner/agent/toolbox.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "tuner/plan/answer_wire.hpp"
#include "tuner/spec/device_class.hpp"

namespace cubind {
namespace {

CompilePoolOptions pool_options(const AgentOptions& options, const Toolchain& toolchain,
                                std::shared_ptr<CompileSlots> slots) {
  CompilePoolOptions pool;
  pool.program = nvrtc_program(options.worker_program, toolchain.nvrtc, toolchain.builtins);
  pool.jobs = options.compile_jobs + CompileSlots::kReserved;
  pool.background_jobs = CompileSlots::for_background(options.compile_jobs);
  pool.deadline = options.compile_deadline;
  pool.slots = std::move(slots);
  return pool;
}

v1::Toolchain offer_of(const Toolchain& toolchain, v1::Toolchain offer) {
  offer.set_name(toolchain.name());
  offer.set_major(toolchain.major);
  offer.set_minor(toolchain.minor);
  offer.set_nvrtc_digest(bytes_of(toolchain.nvrtc_digest));
  offer.set_builtins_digest(bytes_of(toolchain.builtins_digest));
  return offer;
}

bool knows(const Tool& tool, const std::string& architecture) {
  const std::vector<std::string> known(tool.offer.architectures().begin(), tool.offer.architectures().end());
  return architecture.empty() || knows_architecture(known, architecture);
}

}  // namespace

Toolbox::Toolbox(const AgentOptions& options, const ToolchainsFound& found) : searched_(found.tried) {
  const auto slots = std::make_shared<CompileSlots>(options.compile_jobs);
  for (const Toolchain& toolchain : found.toolchains) {
    try {
      auto compiler = std::make_unique<PoolCompiler>(pool_options(options, toolchain, slots));
      v1::Toolchain offer = offer_of(toolchain, compiler->probe());
      auto compiles = std::make_unique<CompileCache>(*compiler);
      tools_.push_back({toolchain, std::move(offer), std::move(compiler), std::move(compiles),
                        std::make_unique<KernelBuilds>(toolchain)});
    } catch (const Error& error) {
      const std::string left_out =
          toolchain.name() + " (" + toolchain.found_in + ") is left out: " + error.what();
      log_warning(left_out);
      searched_.push_back(left_out);
    }
  }
  if (tools_.empty()) {
    log_error(no_nvrtc("\n  "));
  }
}

std::string Toolbox::no_nvrtc(std::string_view separator) const {
  return "no NVRTC 12 or 13 works on this machine: name a CUDA toolkit by CUBIND_CUDA_HOME, or install the "
         "Python wheel nvidia-cuda-nvrtc, and start the agent again. Searched:" +
         std::string(separator) + join(searched_, separator);
}

const Tool& Toolbox::choose(std::uint32_t driver_cuda, const std::string& architecture) const {
  std::string names;
  for (const Tool& tool : tools_) {
    if ((driver_cuda == 0 || driver_loads(driver_cuda, tool.toolchain.major)) && knows(tool, architecture)) {
      return tool;
    }
    names += (names.empty() ? "" : ", ") + tool.toolchain.name();
  }
  const std::string wanted =
      (architecture.empty() ? "" : " for " + architecture) +
      (driver_cuda == 0 ? "" : " that a driver for CUDA " + std::to_string(driver_cuda) + " loads");
  throw Error(ErrorCode::FailedPrecondition, "NVRTC",
              names.empty() ? no_nvrtc("; ") : "none compiles" + wanted + "; there is " + names);
}

}  // namespace cubind
