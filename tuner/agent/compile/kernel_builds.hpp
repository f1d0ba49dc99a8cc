#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <utility>

#include "base/digest.hpp"
#include "schemas/agent.pb.h"
#include "tuner/agent/compile/kernel_language.hpp"

namespace cubind {

/// The builds of one toolchain, kept from job to job: reading and hashing CUDA's headers takes longer than
/// many a compile. The agent does not notice a toolkit that is replaced while it lives, and need not: it
/// compiles the files that it read and hashed. Thread-safe; two threads that ask for the same new kernel may
/// both build it.
class KernelBuilds {
 public:
  explicit KernelBuilds(std::shared_ptr<KernelLanguage> language) : language_(std::move(language)) {}

  /// Throws the errors of parsing the spec and of building it.
  std::shared_ptr<const KernelBuild> of(const v1::SpecBundle& bundle);

 private:
  std::shared_ptr<const KernelBuild> find(const Digest& bundle);

  const std::shared_ptr<KernelLanguage> language_;
  std::mutex mutex_;
  std::list<std::pair<Digest, std::shared_ptr<const KernelBuild>>>
      kept_;  // guarded by mutex_; last used first
};

}  // namespace cubind
