#include "server/answer/artifact_finder.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/key_encoder.hpp"
#include "base/log.hpp"
#include "server/jobs/toolchain_need.hpp"
#include "server/store/store.hpp"

namespace cubind {
namespace {

/// About 1 KiB each.
constexpr std::size_t kMaxRows = 32768;

/// The device's own architecture, then the measured one if the device runs that too (a later minor version).
std::vector<std::string> architectures(const Question& question, const RecordRow* record) {
  std::vector<std::string> found{target_architecture(question)};
  const DeviceFacts& facts = question.device.facts;
  if (record && record->architecture != found.front() &&
      cubin_runs_on(record->architecture, facts.cc_major(), facts.cc_minor())) {
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

/// Whether the candidate's record was measured with the artifact, by its key, and with another cubin.
bool is_damaged(const Question& question, const AnswerCandidate& candidate, const ArtifactSource& source,
                const ToolchainIdentity& toolchain, const ArtifactRow& artifact) {
  const RecordRow* record = candidate.record.get();
  return record && artifact.cubin != record->cubin && was_measured_here(*record) &&
         !candidate.match.has(Departure::OtherRevision) && toolchain == record->toolchain &&
         source.architecture == record->architecture &&
         (record->question.problem == question.key.problem ||
          artifact_source(*question.spec, record->question.problem, candidate.configuration,
                          source.architecture) == source);
}

}  // namespace

struct ArtifactFinder::Search {
  const Question& question;
  const AnswerCandidate& candidate;
  const std::uint64_t noted;  // before the store is read
  std::vector<ToolchainIdentity> tried;
  FoundArtifact found = {};
  std::vector<RowPtr> damaged = {};

  /// Whether the search ends with this artifact.
  bool take(const ArtifactRow& artifact, const ToolchainIdentity& toolchain);
};

bool ArtifactFinder::Search::take(const ArtifactRow& artifact, const ToolchainIdentity& toolchain) {
  const RecordRow* record = candidate.record.get();
  if (!has_wanted_bits(question, record, artifact)) {
    found.has_other_bits = true;
    return false;
  }
  if (!loads(question, artifact.toolchain)) {
    found.refused_toolchain = artifact.toolchain.name;
    return false;
  }
  found.outdated = !question.is_locked && question.toolchain && !is_current(*question.toolchain, toolchain) &&
                   !(record && toolchain == record->toolchain);
  found.artifact = artifact;
  return true;
}

FoundArtifact ArtifactFinder::find(const Question& question, const AnswerCandidate& candidate) {
  Search search{question, candidate, noted_, in_order(question, candidate.record.get())};
  if (!look(search, From::Ram, nullptr)) {
    try {
      store_.read([&](StoreReader& reader) { look(search, From::Store, &reader); });
    } catch (const Error& error) {
      const bool is_away = error.code() == ErrorCode::Unavailable;
      if (!is_away || !look(search, From::LastKnown, nullptr) || !search.found.artifact) {
        throw;
      }
    }
  }
  for (const RowPtr& artifact : search.damaged) {
    drop(*artifact, *candidate.record);
  }
  return std::move(search.found);
}

std::vector<ToolchainIdentity> ArtifactFinder::in_order(const Question& question, const RecordRow* record) {
  std::vector<ToolchainIdentity> tried = toolchains(question);
  sort_by_currency(tried, question);
  if (record) {
    std::erase(tried, record->toolchain);
    tried.insert(tried.begin(), record->toolchain);
  }
  return tried;
}

bool ArtifactFinder::look(Search& search, From from, StoreReader* reader) {
  search.found = {};
  search.damaged.clear();
  const Question& question = search.question;
  const AnswerCandidate& candidate = search.candidate;
  for (const std::string& architecture : architectures(question, candidate.record.get())) {
    const ArtifactSource source =
        artifact_source(*question.spec, question.key.problem, candidate.configuration, architecture);
    for (const ToolchainIdentity& toolchain : search.tried) {
      const auto artifact = row(search, artifact_key(source, toolchain), from, reader);
      if (!artifact) {
        return false;
      }
      if (!*artifact) {
        continue;
      }
      if (is_damaged(question, candidate, source, toolchain, **artifact)) {
        search.damaged.push_back(*artifact);
      } else if (search.take(**artifact, toolchain)) {
        return true;
      }
    }
  }
  return true;
}

std::optional<ArtifactFinder::RowPtr> ArtifactFinder::row(const Search& search, const Key& key, From from,
                                                          StoreReader* reader) {
  std::optional<RowPtr> known;
  {
    const std::lock_guard lock(mutex_);
    const auto found = rows_.find(key.digest);
    if (found != rows_.end() &&
        (found->second.said || found->second.others == others_ || from == From::LastKnown)) {
      known = found->second.said;
    }
  }
  if (!known && reader) {
    auto stored = reader->artifact(key);
    known = stored ? std::make_shared<const ArtifactRow>(*std::move(stored)) : nullptr;
    keep(search, key, *known);
  }
  if (!known || !*known || from == From::LastKnown || blobs_.has((*known)->cubin)) {
    return known;
  }
  if (!reader) {
    return std::nullopt;
  }
  return reader->has_blob((*known)->cubin) ? known : RowPtr();
}

void ArtifactFinder::keep(const Search& search, const Key& key, RowPtr row) {
  const std::lock_guard lock(mutex_);
  if (!row && search.noted != noted_) {
    return;  // it may have been stored since
  }
  if (rows_.size() >= kMaxRows) {
    // Digests are random, and so is which row goes.
    const auto next = rows_.lower_bound(key.digest);
    rows_.erase(next == rows_.end() ? rows_.begin() : next);
  }
  rows_.insert_or_assign(key.digest, Known<RowPtr>{std::move(row), others_});
}

void ArtifactFinder::drop(const ArtifactRow& artifact, const RecordRow& record) {
  log_error("the artifact " + artifact.key.digest.hex() + " of " + artifact.kernel + " names the cubin " +
            artifact.cubin.hex() + ", and its record was measured with " + record.cubin.hex() +
            ": it is dropped, and compiled again for the next question");
  {
    const std::lock_guard lock(mutex_);
    rows_.erase(artifact.key.digest);
  }
  try {
    store_.write([&](StoreWriter& writer) { writer.drop_artifact(artifact.key.digest, artifact.cubin); });
  } catch (const Error& error) {
    log_warning(std::string("the artifact is still stored: ") + error.what());
  }
}

void ArtifactFinder::note(const ArtifactRow& artifact) {
  const std::lock_guard lock(mutex_);
  // A kernel that is not known is read from the store when it is asked for.
  if (const auto found = toolchains_.find(artifact.kernel); found != toolchains_.end()) {
    std::erase(found->second.said, artifact.toolchain);
    found->second.said.insert(found->second.said.begin(), artifact.toolchain);
  }
  if (const auto found = rows_.find(artifact.key.digest); found != rows_.end() && !found->second.said) {
    rows_.erase(found);
  }
  ++noted_;  // after the change: who reads the old count and the old list keeps nothing under the new count
}

void ArtifactFinder::note_others() {
  const std::lock_guard lock(mutex_);
  ++others_;
  ++noted_;
}

std::vector<ToolchainIdentity> ArtifactFinder::toolchains(const Question& question) {
  if (const auto& triton = question.spec->triton) {
    return {triton_identity(*triton)};  // the artifact may have been compiled for another kernel
  }
  const std::string& kernel = question.key.kernel;
  std::optional<std::vector<ToolchainIdentity>> last_known;
  while (true) {
    std::uint64_t noted = 0;
    {
      const std::lock_guard lock(mutex_);
      noted = noted_;
      const auto found = toolchains_.find(kernel);
      if (found != toolchains_.end() && found->second.others == others_) {
        return found->second.said;
      }
      if (found != toolchains_.end()) {
        last_known = found->second.said;
      }
    }
    std::vector<ToolchainIdentity> loaded;
    try {
      store_.read([&](StoreReader& reader) { loaded = reader.toolchains(kernel); });
    } catch (const Error& error) {
      if (error.code() != ErrorCode::Unavailable || !last_known) {
        throw;
      }
      return *last_known;
    }
    const std::lock_guard lock(mutex_);
    // Artifacts that were noted meanwhile found no list to join, and may be missing in the list that was
    // read.
    if (noted == noted_) {
      toolchains_[kernel] = {loaded, others_};
      return loaded;
    }
  }
}

}  // namespace cubind
