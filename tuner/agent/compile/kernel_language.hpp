#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "schemas/agent.pb.h"
#include "tuner/agent/compile/kernel_build.hpp"
#include "tuner/spec/triton_target.hpp"
#include "tuner/toolchain/toolchain.hpp"

namespace cubind {

/// What a job wants of a toolchain.
struct WantedCompiler {
  std::uint32_t driver_cuda = 0;            // cuDriverGetVersion of the driver that loads the cubins; 0: any
  std::string architecture = {};            // empty: any
  std::optional<TritonTarget> triton = {};  // of a Triton kernel
};

/// A toolchain as kernels see it: what differs between CUDA C++ and Triton. Thread-safe.
class KernelLanguage {
 public:
  virtual ~KernelLanguage() = default;
  KernelLanguage() = default;
  KernelLanguage(const KernelLanguage&) = delete;
  KernelLanguage& operator=(const KernelLanguage&) = delete;

  /// What the agent offers of it.
  virtual const v1::Toolchain& offer() const = 0;
  virtual bool is_triton() const = 0;
  virtual bool compiles(const WantedCompiler& wanted) const = 0;
  /// Of a kernel that it compiles. Throws what reading the kernel's sources throws.
  virtual KernelBuild build(std::shared_ptr<const KernelSpec> spec) = 0;
};

/// CUDA C++, compiled by this NVRTC. `told`: what its worker says of it.
std::unique_ptr<KernelLanguage> nvrtc_language(Toolchain toolchain, v1::Toolchain told = {});

/// Triton's IR. `told`: what the worker of a Python that has Triton says of it.
std::unique_ptr<KernelLanguage> triton_language(v1::Toolchain told);

}  // namespace cubind
