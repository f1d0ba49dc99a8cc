#include "tuner/worker/measurement.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "tuner/measure/floor.hpp"
#include "tuner/plan/evidence_wire.hpp"
#include "tuner/worker/warm_up.hpp"

namespace cubind::worker {
namespace {

SampleBlock take_block(GpuSession& session, const TimedWork& work, unsigned samples) {
  while (true) {
    SampleBlock block;
    const BlockConditions before = session.monitor().conditions();
    block.samples_us = session.timer().measure(work, samples);
    block.conditions = session.monitor().conditions();
    // A slowdown that ended within the block counts, and the floor must assume the higher of the clocks.
    block.conditions.throttle_reasons |= before.throttle_reasons;
    block.conditions.sm_mhz = std::max(block.conditions.sm_mhz, before.sm_mhz);
    switch (session.throttle().judge(block.conditions.throttle_reasons)) {
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

void check_floor(GpuSession& session, const v1::PrepareProblem& problem, const SampleBlock& block,
                 const MeasureSettings& settings, v1::MeasuredItem& measured) {
  const cuda::DeviceFacts& facts = session.context().facts();
  const measure::FloorWork work{problem.floor_flops(), problem.floor_min_read_bytes(),
                                !problem.policy().warm_l2()};
  measure::FloorRates rates;
  rates.cc_major = facts.cc_major;
  rates.cc_minor = facts.cc_minor;
  rates.sm_count = facts.sm_count;
  rates.sm_mhz = block.conditions.sm_mhz;
  rates.memory_mhz = std::max(block.conditions.memory_mhz, facts.max_memory_mhz);
  rates.memory_bus_bits = facts.memory_bus_bits;
  const measure::Floor floor = measure::compute_floor(work, rates, settings);
  measured.set_floor_us(floor.us);
  if (block.samples_us.empty()) {
    return;
  }
  const double least = *std::ranges::min_element(block.samples_us);
  if (!measure::is_below(floor, least, session.timer().tick_us())) {
    return;
  }
  measured.set_below_floor(true);
  measured.set_outcome(v1::WRONG_RESULT);
  measured.set_detail(measure::describe(floor, work, rates, least));
}

}  // namespace

TimedWork timed_work(GpuSession& session, ProblemSetup& setup, const BoundPlan& plan) {
  const v1::Policy& policy = setup.request().policy();
  if (policy.flush_method() > L2Flush::kMethod) {
    throw Error(ErrorCode::InvalidArgument, "policy.flush_method",
                std::to_string(policy.flush_method()) + " (known: 1, a buffer of twice the L2 is written)");
  }
  TimedWork work;
  const L2Flush* flush = policy.warm_l2() ? nullptr : &session.flush();
  // The flush comes last: restoring an inout buffer leaves it in the L2.
  if (flush != nullptr || setup.needs_restore()) {
    work.before = [&setup, flush] {
      setup.restore();
      if (flush != nullptr) {
        flush->enqueue();
      }
    };
  }
  const cuda::Stream stream = session.context().stream();
  work.timed = [&setup, &plan, stream] {
    setup.clear_timed();
    plan.enqueue(stream);
  };
  work.kernels = plan.launches() + setup.timed_clears();
  work.as_graph = policy.graph_launch();
  if (work.kernels == 0) {
    throw Error(ErrorCode::InvalidArgument, "measure.plan", "has no launch to time");
  }
  return work;
}

void warm_up_with(GpuSession& session, const TimedWork& work, const MeasureSettings& settings) {
  const auto run = [&] {
    constexpr int kBatch = 8;
    for (int i = 0; i < kBatch; ++i) {
      if (work.before) {
        work.before();
      }
      work.timed();
    }
    session.context().synchronize("the warm-up");
  };
  warm_up(
      run, [&] { return session.monitor().sm_mhz(); }, settings);
}

std::optional<std::string> first_run(GpuSession& session, ProblemSetup& setup, const TimedWork& work,
                                     bool guarded) {
  if (guarded) {
    setup.poison(verify::kFirstPoison);
  }
  if (work.before) {
    work.before();
  }
  work.timed();
  if (!guarded) {
    return std::nullopt;
  }
  session.context().synchronize("the variant");
  return setup.find_damage();
}

v1::MeasuredItem measure_block(GpuSession& session, const v1::PrepareProblem& problem, const TimedWork& work,
                               const v1::MeasureTrials::Item& item, const MeasureSettings& settings) {
  v1::MeasuredItem measured;
  measured.set_trial(item.trial());
  measured.set_outcome(v1::CORRECT);
  const SampleBlock block = take_block(session, work, item.samples());
  measured.mutable_samples_us()->Add(block.samples_us.begin(), block.samples_us.end());
  to_wire(block.conditions, *measured.mutable_conditions());
  check_floor(session, problem, block, settings, measured);
  session.worked();
  return measured;
}

}  // namespace cubind::worker
