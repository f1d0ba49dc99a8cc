// Checks an agent's reports against its lease. Agents run anywhere, and their reports answer every caller, so
// a report that does not fit changes nothing.
#pragma once

#include "base/error.hpp"
#include "server/jobs/agent.hpp"
#include "server/jobs/open_jobs.hpp"

namespace cubind {

class StoreReader;

/// Each function throws InvalidArgument with the member of the message and the right value. The job is
/// leased.

/// Checks that no row comes twice, and that the agent has offered the toolchains. Trials must be of the
/// leased problem and a configuration of its space, with the keys that follow from both. Artifacts must have
/// the key and the entries of one of these trials, or of a configuration to be compiled; a lease that
/// compiles brings nothing else. Verifications must compare with the kernel's reference.
void check_batch(const OpenJob& job, const AgentProfile& agent, const WorkBatch& batch);
/// Checks that an artifact that is already stored has the stored bytes, and that samples and verifications
/// belong to trials of this batch or of earlier ones for the same question.
void check_against_store(const OpenJob& job, const WorkBatch& batch, StoreReader& reader);
/// Checks that a trial that names another one as measured for it runs the same code by the same launches, if
/// the cubins of both are stored. The batch is already stored.
void check_measured_as(const OpenJob& job, const WorkBatch& batch, StoreReader& reader);
/// Checks size and symbols against the stored cubin.
void check_cubin(const ArtifactRow& artifact, int index, StoreReader& reader);
/// Whether a verification of the trial has failed in the job's series, with the current reference and
/// tolerance.
bool has_failed(const OpenJob& job, const TrialRow& trial, StoreReader& reader);

/// The winner has both passed and failed a verification: the job continues without that trial.
class UnstableWinner : public Error {
 public:
  using Error::Error;
};

/// Checks that the winner is a correct trial of the job with passed verifications, and that its time and gain
/// are within the samples of the finalists. Also throws UnstableWinner.
void check_result(const OpenJob& job, const WorkResult& result, StoreReader& reader);

}  // namespace cubind
