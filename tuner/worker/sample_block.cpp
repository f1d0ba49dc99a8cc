#include "tuner/worker/sample_block.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "tuner/measure/floor.hpp"

namespace cubind::worker {
namespace {

struct Blocks {
  std::vector<std::vector<double>> samples_us;  // of each work
  Conditions conditions;
};

Blocks take_blocks(const BlockTools& tools, std::span<const TimedWork> works, unsigned samples) {
  while (true) {
    Blocks blocks;
    const Conditions before = tools.conditions();
    blocks.samples_us = tools.timer.measure_each(works, samples);
    blocks.conditions = tools.conditions();
    // A slowdown that ended within the block counts, and the floor must assume the higher of the clocks.
    blocks.conditions.set_throttle_reasons(blocks.conditions.throttle_reasons() | before.throttle_reasons());
    blocks.conditions.set_sm_mhz(std::max(blocks.conditions.sm_mhz(), before.sm_mhz()));
    switch (tools.throttle.judge(blocks.conditions.throttle_reasons())) {
      case measure::BlockVerdict::Drop:
        continue;
      case measure::BlockVerdict::KeepThrottled:
        blocks.conditions.set_throttled(true);
        break;
      case measure::BlockVerdict::Keep:
        break;
    }
    return blocks;
  }
}

void check_floor(const BlockTools& tools, const v1::PrepareProblem& problem, const Conditions& conditions,
                 const MeasureSettings& settings, v1::MeasuredItem& measured) {
  const measure::FloorWork work{problem.floor_flops(), problem.floor_min_read_bytes(),
                                !problem.policy().warm_l2()};
  const measure::FloorRates rates = measure::floor_rates(
      tools.facts, conditions.sm_mhz(), std::max(conditions.memory_mhz(), tools.facts.max_memory_mhz));
  measured.set_floor_us(measure::compute_floor(work, rates, settings).us);
  std::string why =
      measure::impossible_sample(work, rates, {measured.samples_us().begin(), measured.samples_us().end()},
                                 tools.timer.tick_us(), settings);
  if (!why.empty()) {
    measured.set_below_floor(true);
    measured.set_outcome(v1::WRONG_RESULT);
    measured.set_detail(std::move(why));
  }
}

}  // namespace

TimedWork timed_work(SampleSteps steps) {
  if (steps.kernels == 0) {
    throw Error(ErrorCode::InvalidArgument, "measure.plan", "has no launch to time");
  }
  TimedWork work;
  work.kernels_before = (steps.move ? steps.move_kernels : 0) + (steps.flush ? steps.flush_kernels : 0);
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
                          const std::function<std::uint32_t()>& sm_mhz, const MeasureSettings& settings,
                          std::uint32_t highest_mhz) {
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
  return warm_up(run, sm_mhz, settings, highest_mhz);
}

std::vector<v1::MeasuredItem> measure_blocks(const BlockTools& tools, const v1::PrepareProblem& problem,
                                             std::span<const TimedWork> works,
                                             const v1::MeasureTrials& request,
                                             const MeasureSettings& settings) {
  const std::uint32_t samples = request.items(0).samples();
  for (const v1::MeasureTrials::Item& item : request.items()) {
    if (item.samples() != samples) {
      throw Error(ErrorCode::InvalidArgument, "measure.items", "must all want equally many samples");
    }
  }
  const Blocks blocks = take_blocks(tools, works, samples);
  std::vector<v1::MeasuredItem> result;
  for (std::size_t i = 0; i < works.size(); ++i) {
    v1::MeasuredItem& measured = result.emplace_back();
    measured.set_trial(request.items(static_cast<int>(i)).trial());
    measured.set_outcome(v1::CORRECT);
    measured.mutable_samples_us()->Add(blocks.samples_us[i].begin(), blocks.samples_us[i].end());
    *measured.mutable_conditions() = blocks.conditions;
    check_floor(tools, problem, blocks.conditions, settings, measured);
  }
  return result;
}

}  // namespace cubind::worker
