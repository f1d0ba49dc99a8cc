// A sample and a block of samples: what is done in which order, and which blocks count. The GPU is behind
// functions, so that these rules hold without one.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "cuda_api/device_facts.hpp"
#include "plan/facts/facts.hpp"
#include "schemas/worker.pb.h"
#include "tuner/measure/measure_settings.hpp"
#include "tuner/measure/throttle.hpp"
#include "tuner/worker/timer.hpp"
#include "tuner/worker/warm_up.hpp"

namespace cubind::worker {

/// Each enqueues on the context's stream.
struct SampleSteps {
  std::function<void()> move;     // to other memory, `move_kernels` kernels; empty: all are taken at one slot
  std::function<void()> restore;  // `inout` buffers and untimed clears; empty: the plan needs none
  std::function<void()> flush;    // of the L2, `flush_kernels` kernels; empty: it stays warm
  std::function<void()> run;      // `kernels` kernels, which are timed
  unsigned move_kernels = 0;
  unsigned flush_kernels = 0;
  unsigned kernels = 0;
  bool as_graph = false;
};

/// Throws Error(InvalidArgument) where there is nothing to time.
TimedWork timed_work(SampleSteps steps);

/// Runs the work, as in a sample, until the SM clock is steady. `synchronize` waits for what is enqueued;
/// `highest_mhz` is that of the device, 0 if unknown.
WarmUpResult warm_up_with(const TimedWork& work, const std::function<void()>& synchronize,
                          const std::function<std::uint32_t()>& sm_mhz, const MeasureSettings& settings,
                          std::uint32_t highest_mhz = 0);

/// What a block is taken with.
struct BlockTools {
  Timer& timer;
  std::function<Conditions()> conditions;  // a reading of the GPU's state
  measure::ThrottlePolicy& throttle;
  const cuda::DeviceFacts& facts;
};

/// A block of each item of the request, one after the other, with their conditions; `works` in the order of
/// the items, each after a first run. Blocks under thermal or hardware slowdown are measured again as the
/// throttle policy says. A block with a sample below the floor is refused: `below_floor`, outcome
/// WRONG_RESULT, detail with both figures. Throws DriverError for the variants' faults, and
/// Error(InvalidArgument) where items want different numbers of samples.
std::vector<v1::MeasuredItem> measure_blocks(const BlockTools& tools, const v1::PrepareProblem& problem,
                                             std::span<const TimedWork> works,
                                             const v1::MeasureTrials& request,
                                             const MeasureSettings& settings);

}  // namespace cubind::worker
