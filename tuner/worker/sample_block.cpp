#include "tuner/worker/sample_block.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "tuner/measure/floor.hpp"
#include "tuner/plan/evidence_wire.hpp"

namespace cubind::worker {
namespace {

SampleBlock take_block(const BlockTools& tools, const TimedWork& work, unsigned samples) {
  while (true) {
    SampleBlock block;
    const BlockConditions before = tools.conditions();
    block.samples_us = tools.timer.measure(work, samples);
    block.conditions = tools.conditions();
    // A slowdown that ended within the block counts, and the floor must assume the higher of the clocks.
    block.conditions.throttle_reasons |= before.throttle_reasons;
    block.conditions.sm_mhz = std::max(block.conditions.sm_mhz, before.sm_mhz);
    switch (tools.throttle.judge(block.conditions.throttle_reasons)) {
      case measure::BlockVerdict::Drop:
        continue;
      case measure::BlockVerdict::KeepThrottled:
        block.conditions.throttled = true;
        break;
      case measure::BlockVerdict::Keep:
        break;
    }
    return block;
  }
}

void check_floor(const BlockTools& tools, const v1::PrepareProblem& problem, const SampleBlock& block,
                 const MeasureSettings& settings, v1::MeasuredItem& measured) {
  const measure::FloorWork work{problem.floor_flops(), problem.floor_min_read_bytes(),
                                !problem.policy().warm_l2()};
  measure::FloorRates rates;
  rates.cc_major = tools.facts.cc_major;
  rates.cc_minor = tools.facts.cc_minor;
  rates.sm_count = tools.facts.sm_count;
  rates.sm_mhz = block.conditions.sm_mhz;
  rates.memory_mhz = std::max(block.conditions.memory_mhz, tools.facts.max_memory_mhz);
  rates.memory_bus_bits = tools.facts.memory_bus_bits;
  const measure::Floor floor = measure::compute_floor(work, rates, settings);
  measured.set_floor_us(floor.us);
  if (block.samples_us.empty()) {
    return;
  }
  const double least = *std::ranges::min_element(block.samples_us);
  if (!measure::is_below(floor, least, tools.timer.tick_us())) {
    return;
  }
  measured.set_below_floor(true);
  measured.set_outcome(v1::WRONG_RESULT);
  measured.set_detail(measure::describe(floor, work, rates, least));
}

}  // namespace

TimedWork timed_work(SampleSteps steps) {
  if (steps.kernels == 0) {
    throw Error(ErrorCode::InvalidArgument, "measure.plan", "has no launch to time");
  }
  TimedWork work;
  work.kernels_before = steps.flush ? steps.flush_kernels : 0;
  // The flush comes last: restoring an inout buffer leaves it in the L2.
  std::vector<std::function<void()>> before;
  for (auto* step : {&steps.move, &steps.restore, &steps.flush}) {
    if (*step) {
      before.push_back(std::move(*step));
    }
  }
  if (!before.empty()) {
    work.before = [before = std::move(before)] {
      for (const auto& step : before) {
        step();
      }
    };
  }
  work.timed = std::move(steps.run);
  work.kernels = steps.kernels;
  work.as_graph = steps.as_graph;
  return work;
}

WarmUpResult warm_up_with(const TimedWork& work, const std::function<void()>& synchronize,
                          const std::function<std::uint32_t()>& sm_mhz, const MeasureSettings& settings) {
  const auto run = [&] {
    constexpr int kBatch = 8;
    for (int i = 0; i < kBatch; ++i) {
      if (work.before) {
        work.before();
      }
      work.timed();
    }
    synchronize();
  };
  return warm_up(run, sm_mhz, settings);
}

v1::MeasuredItem measure_block(const BlockTools& tools, const v1::PrepareProblem& problem,
                               const TimedWork& work, const v1::MeasureTrials::Item& item,
                               const MeasureSettings& settings) {
  v1::MeasuredItem measured;
  measured.set_trial(item.trial());
  measured.set_outcome(v1::CORRECT);
  const SampleBlock block = take_block(tools, work, item.samples());
  measured.mutable_samples_us()->Add(block.samples_us.begin(), block.samples_us.end());
  to_wire(block.conditions, *measured.mutable_conditions());
  check_floor(tools, problem, block, settings, measured);
  return measured;
}

}  // namespace cubind::worker
