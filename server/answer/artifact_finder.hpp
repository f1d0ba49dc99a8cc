// Finds the artifact of a configuration: for today's source, an architecture that the device runs and a
// toolchain that the driver loads.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "server/answer/blob_cache.hpp"
#include "server/lookup/lookup.hpp"

namespace cubind {

class Store;
class StoreReader;

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

/// Thread-safe. Rows that were read stay in RAM: while the store cannot be read, a question whose rows and
/// cubin are there has the answer that it had before.
class ArtifactFinder {
 public:
  ArtifactFinder(Store& store, const BlobCache& blobs) : store_(store), blobs_(blobs) {}

  /// The record's toolchain is tried first, so that the very bytes that were measured are served where they
  /// can be; then today's, then the others. Numerics `invariant:DIM` have no other one: the record's alone,
  /// for a default today's. A locked question takes the record's bytes alone, whatever compiled them.
  ///
  /// The row of the artifact that the record was measured with must name the record's cubin. One that names
  /// another is damaged: it is dropped and counts as not stored.
  FoundArtifact find(const Question& question, const AnswerCandidate& candidate);

  /// A new artifact: its toolchain may not have been seen with this kernel.
  void note(const ArtifactRow& artifact);
  /// Other daemons have stored artifacts.
  void note_others();
  /// How many were noted.
  std::uint64_t noted() const { return noted_; }

 private:
  using RowPtr = std::shared_ptr<const ArtifactRow>;  // null: not stored
  /// What the store has said, and how many note_others() there had been. What was not stored then may be
  /// stored since another one.
  template <typename Said>
  struct Known {
    Said said;
    std::uint64_t others = 0;
  };
  enum class From : std::uint8_t { Ram, Store, LastKnown };
  struct Search;

  std::vector<ToolchainIdentity> toolchains(const Question& question);
  std::vector<ToolchainIdentity> in_order(const Question& question, const RecordRow* record);
  /// False: the source does not tell.
  bool look(Search& search, From from, StoreReader* reader);
  std::optional<RowPtr> row(const Search& search, const Key& key, From from, StoreReader* reader);
  void keep(const Search& search, const Key& key, RowPtr row);
  void drop(const ArtifactRow& artifact, const RecordRow& record);

  Store& store_;
  const BlobCache& blobs_;
  std::atomic<std::uint64_t> noted_{0};
  std::mutex mutex_;
  std::uint64_t others_ = 0;              // guarded by mutex_
  std::map<Digest, Known<RowPtr>> rows_;  // guarded by mutex_; by key
  /// Guarded by mutex_; by kernel, newest first.
  std::map<std::string, Known<std::vector<ToolchainIdentity>>> toolchains_;
};

/// Single-flight key of compiling a configuration for a question.
Digest compile_key(const Question& question, const Configuration& configuration);

}  // namespace cubind
