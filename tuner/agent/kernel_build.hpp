#pragma once

#include <memory>
#include <string>

#include "tuner/agent/compile_input.hpp"
#include "tuner/includes/include_closure.hpp"
#include "tuner/spec/kernel_spec.hpp"
#include "tuner/spec/keys.hpp"
#include "tuner/toolchain/toolchain.hpp"

namespace cubind {

/// A kernel's sources as one toolchain sees them: the compile workers' input, and the identity that enters
/// the keys. Immutable; safe to share between threads.
class KernelBuild {
 public:
  /// Throws what include_closure throws. `toolchain` is copied into the identity; neither it nor its
  /// `headers` are kept.
  KernelBuild(std::shared_ptr<const KernelSpec> spec, const Toolchain& toolchain, ToolkitHeaders& headers);

  const std::shared_ptr<const KernelSpec>& spec() const { return spec_; }
  const ToolchainIdentity& identity() const { return kernel_.identity; }
  /// For the reference kernel, whose source includes other files.
  const ToolchainIdentity& reference_identity() const { return reference_.identity; }

  CompileInput request(const ArtifactSource& source) const;
  CompileInput reference_request(const ArtifactSource& source) const;

 private:
  struct Files {
    ToolchainIdentity identity;
    CompileInput input;  // source and headers alone
  };
  static Files files_of(const std::string& source, const IncludeSearch& search, const Toolchain& toolchain);

  std::shared_ptr<const KernelSpec> spec_;
  Files kernel_, reference_;
};

}  // namespace cubind
