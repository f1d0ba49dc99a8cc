#pragma once

#include <memory>

#include "tuner/agent/compile/compile_input.hpp"
#include "tuner/spec/kernel_spec.hpp"
#include "tuner/spec/keys.hpp"

namespace cubind {

/// A kernel's sources as one toolchain sees them: the compile workers' input, and the identity that enters
/// the keys. Made by a KernelLanguage. Immutable; safe to share between threads.
class KernelBuild {
 public:
  struct Part {
    ToolchainIdentity identity;
    CompileInput input;  // what all requests have in common
  };
  /// `reference`: of a reference kernel, whose source includes other files.
  KernelBuild(std::shared_ptr<const KernelSpec> spec, Part kernel, Part reference = {});

  const std::shared_ptr<const KernelSpec>& spec() const { return spec_; }
  const ToolchainIdentity& identity() const { return kernel_.identity; }
  const ToolchainIdentity& reference_identity() const { return reference_.identity; }

  CompileInput request(const ArtifactSource& source) const;
  CompileInput reference_request(const ArtifactSource& source) const;

 private:
  std::shared_ptr<const KernelSpec> spec_;
  Part kernel_, reference_;
};

}  // namespace cubind
