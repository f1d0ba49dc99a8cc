#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "schemas/worker.pb.h"
#include "tuner/agent/tuning/job_input.hpp"

namespace cubind {

/// The way in which the device worker gets the right result.
struct ReferenceLaunch {
  std::string kind;   // "kernel" or "default"
  std::string cubin;  // empty for the replay device, which has its verdicts on record
  LaunchPlan plan;    // with symbols
};

/// The buffers of a problem: all launches of its default configuration, also those that are left out for a
/// zero in their grid. Only scratch depends on the configuration, and the device worker makes it larger for
/// the trial that wants more. Absent where no configuration is valid.
std::optional<LaunchPlan> buffers_plan(const JobInput& input, const Problem& problem);

/// The request that makes a device worker ready for one problem: each buffer as large as the largest of
/// `plans` wants it, inputs seeded from the job, tolerances of the outputs, the floors of the work. Throws
/// Error(InvalidArgument) if the spec's expressions fail.
v1::PrepareProblem make_prepare_request(const JobInput& input, std::uint32_t setup, const Problem& problem,
                                        const std::vector<const LaunchPlan*>& plans,
                                        const ReferenceLaunch& reference);

/// How long a slow GPU may take to prepare this: to allocate and fill the buffers and to run the reference a
/// few times. References are simple kernels, at worst one thread that walks through a row. If the spec does
/// not state the work (0 flops), the reference may do any: then a minute and a half at least.
std::chrono::milliseconds prepare_time(const v1::PrepareProblem& request);

}  // namespace cubind
