#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "base/digest.hpp"
#include "schemas/agent.pb.h"

namespace cubind {

/// So many batches of a job may be in flight, and are lost with a killed daemon. Ending and granting the job
/// of another GPU keeps the daemon busy for a while.
inline constexpr std::size_t kBatchesInFlight = 2;

/// One job's way to the daemon. The real one is a lease of the gRPC stream; tests keep the results in memory.
/// Used from the job's thread. Every member throws Error(Aborted) when the lease is lost and Error(Cancelled)
/// when the job is to be handed back; members that move cubins also throw Error(Unavailable) and
/// Error(FailedPrecondition) with the daemon's reason, which ends the job.
class JobChannel {
 public:
  virtual ~JobChannel() = default;

  /// Stored in one transaction. Returns while this batch and some before it are in flight, so that
  /// measuring does not wait for the daemon.
  virtual void store(v1::Batch batch) = 0;
  /// Returns when all batches have been acknowledged.
  virtual void settle() = 0;
  /// Not acknowledged; a lost one is made good by the next.
  virtual void progress(const v1::Progress& progress) = 0;
  /// The same a little later, unless another report comes before.
  virtual void progress_soon(const v1::Progress& progress) = 0;
  /// The cubin of this digest; absent if the daemon no longer has it.
  virtual std::optional<std::string> fetch_cubin(const Digest& digest) = 0;
  /// For a cubin that would make its message larger than kMaxInlineCubinBytes: call it before the Batch that
  /// names it without bytes.
  virtual void put_artifact(const v1::ArtifactInfo& info, const std::string& zstd_cubin) = 0;

  /// Whether a caller waits for the job; may become true while it runs. Throws nothing.
  virtual bool is_awaited() const { return true; }
};

}  // namespace cubind
