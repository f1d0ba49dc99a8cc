#include "tuner/agent/toolbox.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "tuner/spec/device_class.hpp"

namespace cubind {
namespace {

CompilePoolOptions pool_options(const AgentOptions& options, const Toolchain& toolchain) {
  CompilePoolOptions pool;
  pool.worker_program = options.worker_program;
  pool.nvrtc = toolchain.nvrtc;
  pool.builtins = toolchain.builtins;
  pool.jobs = options.compile_jobs;
  pool.deadline = options.compile_deadline;
  return pool;
}

v1::Toolchain offer_of(const Toolchain& toolchain, v1::Toolchain offer) {
  offer.set_name(toolchain.name());
  offer.set_major(toolchain.major);
  offer.set_minor(toolchain.minor);
  offer.set_nvrtc_digest(std::string(toolchain.nvrtc_digest.view()));
  offer.set_builtins_digest(std::string(toolchain.builtins_digest.view()));
  return offer;
}

bool knows(const Tool& tool, const std::string& architecture) {
  const auto& known = tool.offer.architectures();
  return architecture.empty() || std::find(known.begin(), known.end(), architecture) != known.end();
}

}  // namespace

Toolbox::Toolbox(const AgentOptions& options, const ToolchainsFound& found)
    : tried_(join(found.tried, "\n  ")) {
  for (const Toolchain& toolchain : found.toolchains) {
    try {
      auto compiler = std::make_unique<PoolCompiler>(pool_options(options, toolchain));
      v1::Toolchain offer = offer_of(toolchain, compiler->probe());
      tools_.push_back({toolchain, std::move(offer), std::move(compiler)});
    } catch (const Error& error) {
      log_warning(toolchain.name() + " (" + toolchain.found_in + ") is left out: " + error.what());
    }
  }
  if (tools_.empty()) log_error("no NVRTC works here; looked into:\n  " + tried_);
}

const Tool& Toolbox::choose(std::uint32_t driver_cuda, const std::string& architecture) const {
  std::string names;
  for (const Tool& tool : tools_) {
    if ((driver_cuda == 0 || driver_loads(driver_cuda, tool.toolchain.major)) && knows(tool, architecture))
      return tool;
    names += (names.empty() ? "" : ", ") + tool.toolchain.name();
  }
  const std::string wanted =
      (architecture.empty() ? "" : " for " + architecture) +
      (driver_cuda == 0 ? "" : " that a driver for CUDA " + std::to_string(driver_cuda) + " loads");
  throw Error(
      ErrorCode::FailedPrecondition, "NVRTC",
      "none compiles" + wanted + "; there is " + (names.empty() ? "none, looked into:\n  " + tried_ : names));
}

}  // namespace cubind
