// Checks that a variant computes the reference's results and writes nothing else.
#pragma once

#include "schemas/worker.pb.h"
#include "tuner/worker/gpu_session.hpp"
#include "tuner/worker/problem_setup.hpp"

namespace cubind::worker {

/// "y[7] departs by 4 times the tolerance; ...".
std::string explain(const OutputComparison& output);

/// Fresh inputs, outputs poisoned, red zones painted; one run, or two from different poisons where
/// `check_same_bits` asks for it, or `launches`. After timing, if the problem was timed in this setup, inputs
/// change in place and the outputs of the first run hold other values. With `launches` the last run has each
/// buffer at the end of its memory. The result's outcome is CORRECT or
/// WRONG_RESULT, the latter with a detail; a run that fails throws DriverError.
v1::VerificationResult verify_variant(GpuSession& session, ProblemSetup& setup, const LoadedModule& module,
                                      const v1::VerifyTrial& request);

}  // namespace cubind::worker
