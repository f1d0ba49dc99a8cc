#include "server/answer/artifact_finder.hpp"

#include <algorithm>

#include "base/key_encoder.hpp"
#include "server/jobs/toolchain_need.hpp"
#include "server/store/store.hpp"

namespace cubind {
namespace {

/// The device's own architecture, then the measured one if the device runs that too (a later minor version).
std::vector<std::string> architectures(const Question& question, const RecordRow* record) {
  std::vector<std::string> found{target_architecture(question)};
  const DeviceFacts& facts = question.device.facts;
  if (record && record->architecture != found.front() &&
      cubin_runs_on(record->architecture, facts.cc_major, facts.cc_minor)) {
    found.push_back(record->architecture);
  }
  return found;
}

bool loads(const Question& question, const ToolchainIdentity& toolchain) {
  return !question.driver || question.driver->cuda == 0 ||
         driver_loads(question.driver->cuda, *question.spec, toolchain);
}

}  // namespace

Digest compile_key(const Question& question, const Configuration& configuration) {
  const ArtifactSource source =
      artifact_source(*question.spec, question.key.problem, configuration, target_architecture(question));
  return KeyEncoder("compile", 1)
      .field("kernel", question.key.kernel)
      .field("source", artifact_key(source, ToolchainIdentity{}).digest)
      .field("driver", (question.driver ? question.driver->cuda : 0) / 1000)
      .digest();
}

namespace {

bool has_wanted_bits(const Question& question, const RecordRow* record, const ArtifactRow& artifact) {
  if (question.is_locked) {
    return record && artifact.cubin == record->cubin;
  }
  if (question.key.numerics.kind != Numerics::Kind::Invariant) {
    return true;
  }
  return record ? artifact.toolchain == record->toolchain
                : !question.toolchain || is_current(*question.toolchain, artifact.toolchain);
}

/// What would compile today comes first.
void sort_by_currency(std::vector<ToolchainIdentity>& toolchains, const Question& question) {
  if (question.toolchain) {
    std::ranges::stable_partition(
        toolchains, [&](const ToolchainIdentity& one) { return is_current(*question.toolchain, one); });
  }
}

}  // namespace

FoundArtifact ArtifactFinder::find(const Question& question, const Configuration& configuration,
                                   const RecordRow* record) {
  std::vector<ToolchainIdentity> tried = toolchains(question);
  sort_by_currency(tried, question);
  if (record) {
    std::erase(tried, record->toolchain);
    tried.insert(tried.begin(), record->toolchain);
  }
  FoundArtifact found;
  for (const std::string& architecture : architectures(question, record)) {
    const ArtifactSource source =
        artifact_source(*question.spec, question.key.problem, configuration, architecture);
    for (const ToolchainIdentity& toolchain : tried) {
      const Key key = artifact_key(source, toolchain);
      std::optional<ArtifactRow> artifact;
      store_.read([&](StoreReader& reader) {
        artifact = reader.artifact(key);
        if (artifact && !reader.has_blob(artifact->cubin)) {
          artifact.reset();
        }
      });
      if (artifact && !has_wanted_bits(question, record, *artifact)) {
        found.has_other_bits = true;
        continue;
      }
      if (artifact && loads(question, artifact->toolchain)) {
        found.outdated = !question.is_locked && question.toolchain &&
                         !is_current(*question.toolchain, toolchain) &&
                         !(record && toolchain == record->toolchain);
        found.artifact = std::move(artifact);
        return found;
      }
      if (artifact) {
        found.refused_toolchain = artifact->toolchain.name;
      }
    }
  }
  return found;
}

void ArtifactFinder::note(const ArtifactRow& artifact) {
  const std::lock_guard lock(mutex_);
  // A kernel that is not known is read from the store when it is asked for.
  if (const auto found = known_.find(artifact.kernel); found != known_.end()) {
    std::erase(found->second, artifact.toolchain);
    found->second.insert(found->second.begin(), artifact.toolchain);
  }
  ++noted_;  // after the change: who reads the old count and the old list keeps nothing under the new count
}

void ArtifactFinder::note_others() {
  const std::lock_guard lock(mutex_);
  known_.clear();
  ++noted_;
}

std::vector<ToolchainIdentity> ArtifactFinder::toolchains(const Question& question) {
  if (const auto& triton = question.spec->triton) {
    return {triton_identity(*triton)};  // the artifact may have been compiled for another kernel
  }
  const std::string& kernel = question.key.kernel;
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = known_.find(kernel); found != known_.end()) {
      return found->second;
    }
  }
  while (true) {
    const std::uint64_t noted = noted_;
    std::vector<ToolchainIdentity> loaded;
    store_.read([&](StoreReader& reader) { loaded = reader.toolchains(kernel); });
    const std::lock_guard lock(mutex_);
    // Artifacts that were noted meanwhile found no list to join, and may be missing in the list that was
    // read.
    if (noted == noted_) {
      return known_.try_emplace(kernel, std::move(loaded)).first->second;
    }
  }
}

}  // namespace cubind
