// Between the job queue's structs and the messages of agents, but their hello. Errors name the field.
#pragma once

#include <chrono>
#include <vector>

#include "schemas/agent.pb.h"
#include "server/jobs/agent.hpp"

namespace cubind {

void check_progress(const v1::Progress& progress);
WorkBatch batch_from_wire(const v1::Batch& batch);
/// `now`: what claims to be measured later is refused.
WorkResult result_from_wire(const v1::JobResult& result, std::chrono::system_clock::time_point now);
/// Its log as it may be printed, and of the artifact what describes it.
v1::CheckResult checked(v1::CheckResult result);

/// Leaves out the known work.
void to_wire(const Lease& lease, v1::LeaseGrant& to);
/// The known work in pages of about 1 MiB, to be sent before the lease itself; none where nothing is known.
std::vector<v1::LeaseGrant> known_work(const Lease& lease);
/// A job that is announced: of the known work the keys of artifacts alone.
void announcement_of(const Lease& next, v1::LeaseGrant& to);
void to_wire(const CheckOrder& order, v1::CheckOrder& to);

}  // namespace cubind
