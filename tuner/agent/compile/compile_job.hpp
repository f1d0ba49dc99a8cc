#pragma once

#include "tuner/agent/compile/toolbox.hpp"
#include "tuner/agent/lease/job_channel.hpp"
#include "tuner/agent/lease/job_stop.hpp"

namespace cubind {

/// A COMPILE_WINNER lease: compiles the configurations that it names for its architecture and uploads them.
/// Nothing is measured. DONE where at least one was compiled, else FAILED with the compiler's log. Throws
/// where the job is stopped.
v1::JobResult run_compile_job(const v1::LeaseGrant& lease, const Toolbox& toolbox, JobChannel& channel,
                              JobStop& stop);

/// CheckKernel: compiles one configuration; nothing is stored. A spec that does not parse is outcome COMPILE,
/// its log says where.
v1::CheckResult run_check(const v1::CheckOrder& order, const Toolbox& toolbox, JobStop& stop);

}  // namespace cubind
