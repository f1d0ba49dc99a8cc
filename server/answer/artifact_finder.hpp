// Finds the artifact of a configuration for the current source, an architecture that the device runs and a
// toolchain whose cubins the driver loads.
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

/// The artifact to serve, else the reason why no existing one can be served.
struct FoundArtifact {
  std::optional<ArtifactRow> artifact;
  /// It was compiled by an earlier toolchain than the current one, and was not measured.
  bool outdated = false;
  /// An artifact exists, but the driver cannot load the cubins of its toolchain ("nvrtc 13.0").
  std::optional<std::string> refused_toolchain;
  /// An artifact exists, but its results may not have the bits that the numerics require.
  bool has_other_bits = false;
};

/// Thread-safe. Rows stay in RAM after they are read: while the store cannot be read, a question whose rows
/// and cubin are in RAM keeps its answer.
class ArtifactFinder {
 public:
  ArtifactFinder(Store& store, const BlobCache& blobs) : store_(store), blobs_(blobs) {}

  /// Tries the record's toolchain first, so that the measured bytes are served if possible, then the current
  /// one, then the others. Numerics `invariant:DIM` allow only one toolchain: the record's, or for a default
  /// the current one. A locked question takes only the record's bytes, whatever compiled them.
  ///
  /// The row of the artifact that the record was measured with must name the record's cubin. If it names
  /// another one, it is damaged: it is dropped and counts as not stored.
  FoundArtifact find(const Question& question, const AnswerCandidate& candidate);

  /// Notes a new artifact, whose toolchain may be new for this kernel.
  void note(const ArtifactRow& artifact);
  /// Notes that other daemons have stored artifacts.
  void note_others();
  /// The number of noted artifacts.
  std::uint64_t noted() const { return noted_; }

 private:
  using RowPtr = std::shared_ptr<const ArtifactRow>;  // null: not stored
  /// The store's reply and the number of note_others() calls before it. After a further call, an artifact
  /// that was missing then may be stored.
  template <typename Said>
  struct Known {
    Said said;
    std::uint64_t others = 0;
  };
  enum class From : std::uint8_t { Ram, Store, LastKnown };
  struct Search;

  std::vector<ToolchainIdentity> toolchains(const Question& question);
  std::vector<ToolchainIdentity> in_order(const Question& question, const RecordRow* record);
  /// False if the source does not tell.
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

/// The single-flight key for compiling a configuration for a question.
Digest compile_key(const Question& question, const Configuration& configuration);

}  // namespace cubind
