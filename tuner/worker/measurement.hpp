// Blocks of samples of one variant, on the session's GPU.
#pragma once

#include <optional>
#include <string>

#include "schemas/worker.pb.h"
#include "tuner/measure/measure_settings.hpp"
#include "tuner/worker/gpu_session.hpp"
#include "tuner/worker/module_state.hpp"
#include "tuner/worker/problem_setup.hpp"

namespace cubind::worker {

/// How little the samples of a request are trusted.
struct Distrust {
  bool poisons = false;                // outputs, before each sample
  std::uint64_t input_seed = 0;        // not 0: inputs are renewed before each, and shared memory is wiped
  const ModuleState* state = nullptr;  // which is restored then, too
};

/// The work of one sample under the setup's policy; after prepare_timing(). Each is at the setup's next
/// slot: at one and the same, what the last sample left in the caches of addresses makes short kernels up to
/// a fifth faster. All arguments must outlive the work. Throws Error(InvalidArgument) for a flush method that
/// does not exist and for a plan without launches.
TimedWork timed_work(GpuSession& session, ProblemSetup& setup, const LoadedModule& module,
                     const v1::LaunchPlan& plan, const Distrust& distrust);

/// Whether one launch is one sample, whose results stay in its buffers. With a graph of repeats inputs can be
/// renewed before all samples only.
bool leaves_results(GpuSession& session);

/// What was wrong at the sample that was taken `back` before the last one, of work that poisons; empty:
/// nothing.
std::string fault_of_sample(ProblemSetup& setup, std::uint32_t back, std::uint64_t input_seed);

/// Runs the work until the SM clock is steady, if it is not so from an earlier job.
void warm_up_with(GpuSession& session, const TimedWork& work, const MeasureSettings& settings);

/// The untimed first run of a variant, which loads its code. Later blocks go without. Where its results are
/// not known to be right, `guarded` looks at what it wrote outside of its buffers or into its inputs; absent:
/// nothing. Throws DriverError for the variant's faults.
std::optional<std::string> first_run(GpuSession& session, ProblemSetup& setup, const BoundPlan& plan,
                                     bool guarded);

/// A block of each item after first_run(), by the rules of sample_block.hpp.
std::vector<v1::MeasuredItem> measure_blocks(GpuSession& session, const v1::PrepareProblem& problem,
                                             std::span<const TimedWork> works,
                                             const v1::MeasureTrials& request,
                                             const MeasureSettings& settings);

}  // namespace cubind::worker
