// Converts the daemon's structs to the messages of its replies.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "schemas/cubind.pb.h"
#include "server/answer/answerer.hpp"
#include "server/jobs/job_event.hpp"
#include "server/kernel_library.hpp"
#include "server/store/row_facts.hpp"

namespace cubind {

void to_wire(const Generation& from, v1::Generation& to);
/// The whole reply but the job and the cubin's bytes.
void to_wire(const ServedAnswer& from, v1::GetVariantReply& to);
void to_wire(const JobEvent& from, v1::Job& to);
/// `generation` is that of a finished job's record.
void to_wire(const JobEvent& from, const Generation& generation, v1::TuneEvent& to);
void to_wire(const KernelEntry& from, const RecordCount& records, v1::Kernel& to);

/// "done", "waiting_for_idle_gpu".
std::string job_state_name(JobState state);

}  // namespace cubind
