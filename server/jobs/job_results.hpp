// Turns a job's results into rows of the store.
#pragma once

#include "server/jobs/agent.hpp"
#include "server/jobs/open_jobs.hpp"
#include "server/lookup/index.hpp"

namespace cubind {

class Store;
class StoreReader;

/// Completes the agent's rows and stores them in one transaction. The job is leased to the agent. Throws
/// InvalidArgument for rows that do not fit the job (result_check.hpp) and for an artifact without bytes that
/// was not uploaded before, and the store's errors. Returns true if anything was not stored before.
bool store_job_batch(const OpenJob& job, const AgentProfile& agent, WorkBatch& batch, Store& store);

/// Fills question, winner and origin of the job's record. If another problem than the asked one was measured,
/// the job's row notes it. check_result() has passed.
void complete_record(const OpenJob& job, JobRow& row, RecordRow& record, StoreReader& reader);

/// The row that the job has stored; other rows may have the same trial (an imported one, one of an earlier
/// job). Null if a better record exists, because then none was stored.
RecordPtr stored_record(const RecordRow& record, const IndexSnapshot& index);

}  // namespace cubind
