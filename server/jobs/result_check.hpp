// What an agent reports of a lease, held against what it was granted. Agents run anywhere, and what they
// report answers every caller: a report that does not fit changes nothing.
#pragma once

#include "server/jobs/agent.hpp"
#include "server/jobs/open_jobs.hpp"

namespace cubind {

class StoreReader;

/// Each throws InvalidArgument, with the member of the message and what would be right. The job is leased.

/// Trials are of the leased problem, of a configuration of its space, and have the keys that follow from
/// both; artifacts have the key of one of these trials, or of a configuration that is to be compiled.
void check_batch(const OpenJob& job, const WorkBatch& batch);
/// An artifact that is stored has the bytes that are stored. Samples and verifications belong to trials of
/// the batch or of earlier ones for the same question.
void check_against_store(const OpenJob& job, const WorkBatch& batch, StoreReader& reader);
/// The winner is a correct trial of the job with a passed verification, and its time lies within its samples.
void check_result(const OpenJob& job, const WorkResult& result, StoreReader& reader);

}  // namespace cubind
