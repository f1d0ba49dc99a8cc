#pragma once

#include <memory>
#include <string>

#include "schemas/worker.pb.h"
#include "tuner/includes/include_closure.hpp"
#include "tuner/spec/kernel_spec.hpp"
#include "tuner/spec/keys.hpp"
#include "tuner/toolchain/toolchain.hpp"

namespace cubind {

/// A kernel's sources as one toolchain sees them: the compile workers' input, and the identity that enters
/// the keys. Immutable; safe to share between threads.
class KernelBuild {
 public:
  /// Throws what include_closure throws. `toolchain` is copied into the identity and not kept.
  KernelBuild(std::shared_ptr<const KernelSpec> spec, const Toolchain& toolchain);

  const std::shared_ptr<const KernelSpec>& spec() const { return spec_; }
  const ToolchainIdentity& identity() const { return identity_; }
  /// For the reference kernel, whose source includes other files.
  const ToolchainIdentity& reference_identity() const { return reference_identity_; }

  v1::CompileRequest request(const ArtifactSource& source) const;
  v1::CompileRequest reference_request(const ArtifactSource& source) const;

 private:
  std::shared_ptr<const KernelSpec> spec_;
  ToolchainIdentity identity_, reference_identity_;
  v1::CompileRequest kernel_files_, reference_files_;  // source and headers alone
};

}  // namespace cubind
