// What an agent reports of a lease, held against what it was granted. Agents run anywhere, and what they
// report answers every caller: a report that does not fit changes nothing.
#pragma once

#include "base/error.hpp"
#include "server/jobs/agent.hpp"
#include "server/jobs/open_jobs.hpp"

namespace cubind {

class StoreReader;

/// Each throws InvalidArgument, with the member of the message and what would be right. The job is leased.

/// No row comes twice, and the agent has offered the toolchains. Trials are of the leased problem, of a
/// configuration of its space, and have the keys that follow from both; artifacts have the key and the
/// entries of one of these trials, or of a configuration that is to be compiled; a lease that compiles brings
/// nothing else. Verifications compare with the kernel's reference.
void check_batch(const OpenJob& job, const AgentProfile& agent, const WorkBatch& batch);
/// An artifact that is stored has the bytes that are stored. Samples and verifications belong to trials of
/// the batch or of earlier ones for the same question.
void check_against_store(const OpenJob& job, const WorkBatch& batch, StoreReader& reader);
/// A trial that names another one as measured for it runs that one's code by the same launches, as far as the
/// cubins of both are stored. The batch is stored.
void check_measured_as(const OpenJob& job, const WorkBatch& batch, StoreReader& reader);
/// Size and symbols are those of the stored cubin.
void check_cubin(const ArtifactRow& artifact, int index, StoreReader& reader);
/// Whether a verification of the trial has failed in the job's series, against today's reference and
/// tolerance.
bool has_failed(const OpenJob& job, const TrialRow& trial, StoreReader& reader);

/// The winner has failed a verification that it also passed: the job goes on, without that trial.
class UnstableWinner : public Error {
 public:
  using Error::Error;
};

/// The winner is a correct trial of the job with passed verifications, and its time and gain lie within the
/// samples of the finalists. Throws UnstableWinner, too.
void check_result(const OpenJob& job, const WorkResult& result, StoreReader& reader);

}  // namespace cubind
