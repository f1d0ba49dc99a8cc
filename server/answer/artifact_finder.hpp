// Finds the artifact of a configuration: for today's source, an architecture that the device runs and a
// toolchain that the driver loads.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "server/lookup/lookup.hpp"

namespace cubind {

class Store;

/// The artifact to serve, else why none of those that there are can be.
struct FoundArtifact {
  std::optional<ArtifactRow> artifact;
  /// It was compiled by an earlier toolchain than would compile today, and is not what was measured.
  bool outdated = false;
  /// There is an artifact, but the driver cannot load the cubins of its toolchain ("nvrtc 13.0").
  std::optional<std::string> refused_toolchain;
  /// There is an artifact, but its bits may not be those that the numerics want.
  bool has_other_bits = false;
};

/// Thread-safe.
class ArtifactFinder {
 public:
  explicit ArtifactFinder(Store& store) : store_(store) {}

  /// The record's toolchain is tried first, so that the very bytes that were measured are served where they
  /// can be; then today's, then the others. Numerics `invariant:DIM` have no other one: the record's alone,
  /// for a default today's. A locked question takes the record's bytes alone, whatever compiled them.
  FoundArtifact find(const Question& question, const Configuration& configuration, const RecordRow* record);

  /// A new artifact: its toolchain may not have been seen with this kernel.
  void note(const ArtifactRow& artifact);
  /// Other daemons have stored artifacts.
  void note_others();
  /// How many were noted.
  std::uint64_t noted() const { return noted_; }

 private:
  std::vector<ToolchainIdentity> toolchains(const Question& question);

  Store& store_;
  std::atomic<std::uint64_t> noted_{0};
  std::mutex mutex_;
  std::map<std::string, std::vector<ToolchainIdentity>> known_;  // guarded by mutex_; by kernel, newest first
};

/// Single-flight key of compiling a configuration for a question.
Digest compile_key(const Question& question, const Configuration& configuration);

}  // namespace cubind
