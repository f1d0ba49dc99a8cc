// What a job has found, as rows of the store.
#pragma once

#include "server/jobs/agent.hpp"
#include "server/jobs/open_jobs.hpp"
#include "server/lookup/index.hpp"

namespace cubind {

class Store;
class StoreReader;

/// Adds to the rows what the agent leaves to the queue and stores them in one transaction. The job is leased
/// to the agent. Throws InvalidArgument for what does not fit the job (result_check.hpp) and for an artifact
/// without bytes that was not uploaded before, and what the store throws.
/// True if it holds something that was not stored before.
bool store_job_batch(const OpenJob& job, const AgentProfile& agent, WorkBatch& batch, Store& store);

/// Question, winner and origin of the record that the job has found; its row notes where another problem than
/// the asked one was measured. check_result() has passed.
void complete_record(const OpenJob& job, JobRow& row, RecordRow& record, StoreReader& reader);

/// The row that the job has stored. Others may have the same trial: an imported one, one of an earlier job.
/// If a better record is there, none was stored.
RecordPtr stored_record(const RecordRow& record, const IndexSnapshot& index);

}  // namespace cubind
