#include "tuner/worker/measurement.hpp"

#include <utility>

#include "tuner/spec/wire.hpp"
#include "tuner/worker/sample_block.hpp"

namespace cubind::worker {

TimedWork timed_work(GpuSession& session, ProblemSetup& setup, const BoundPlan& plan) {
  const Policy policy = policy_from_wire(setup.request().policy(), "policy");
  SampleSteps steps;
  if (setup.needs_restore()) {
    steps.restore = [&setup] { setup.restore(); };
  }
  if (!policy.warm_l2) {
    steps.flush = [&flush = session.flush()] { flush.enqueue(); };
  }
  const cuda::Stream stream = session.context().stream();
  steps.run = [&setup, &plan, stream] {
    setup.clear_timed();
    plan.enqueue(stream);
  };
  steps.kernels = plan.launches() + setup.timed_clears();
  steps.as_graph = policy.graph_launch;
  return timed_work(std::move(steps));
}

void warm_up_with(GpuSession& session, const TimedWork& work, const MeasureSettings& settings) {
  warm_up_with(
      work, [&] { session.context().synchronize("the warm-up"); }, [&] { return session.monitor().sm_mhz(); },
      settings);
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
  const BlockTools tools{session.timer(), [&] { return session.monitor().conditions(); }, session.throttle(),
                         session.context().facts()};
  v1::MeasuredItem measured = measure_block(tools, problem, work, item, settings);
  session.worked();
  return measured;
}

}  // namespace cubind::worker
