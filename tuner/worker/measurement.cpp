#include "tuner/worker/measurement.hpp"

#include <memory>
#include <utility>

#include "plan/wire.hpp"
#include "tuner/spec/wire.hpp"
#include "tuner/worker/sample_block.hpp"
#include "tuner/worker/verification.hpp"

namespace cubind::worker {

TimedWork timed_work(GpuSession& session, ProblemSetup& setup, const LoadedModule& module,
                     const v1::LaunchPlan& plan, bool poisoned) {
  const Policy policy = policy_from_wire(setup.request().policy(), "policy");
  const auto launches = std::make_shared<const LaunchPlan>(plan_from_wire(plan, "measure.plan"));
  auto bound = std::make_shared<std::optional<BoundPlan>>(setup.bind(module, *launches));
  SampleSteps steps;
  if (setup.has_several_slots()) {
    steps.move = [&setup, &module, launches, bound] {
      setup.next_slot();
      bound->emplace(setup.bind(module, *launches));
    };
  }
  if (poisoned) {
    steps.restore = [&setup] { setup.poison_timed(); };
  } else if (setup.needs_restore()) {
    steps.restore = [&setup] { setup.restore(); };
  }
  if (!policy.warm_l2) {
    steps.flush = [&flush = session.flush()] { flush.enqueue(); };
    steps.flush_kernels = L2Flush::kKernels;
  }
  steps.run = [&setup, bound, stream = session.context().stream()] {
    setup.clear_timed(**bound);
    (*bound)->enqueue(stream);
  };
  steps.kernels = (*bound)->launches() + setup.timed_clears(**bound);
  steps.as_graph = policy.graph_launch;
  return timed_work(std::move(steps));
}

std::string fault_of_last_sample(GpuSession& session, ProblemSetup& setup) {
  if (session.timer().name() != "cupti" || setup.request().policy().graph_launch()) {
    return {};
  }
  for (const OutputComparison& output : setup.compare_timed()) {
    if (!output.result.passed()) {
      return "right when it was verified, wrong when it was timed: " + explain(output);
    }
  }
  return {};
}

void warm_up_with(GpuSession& session, const TimedWork& work, const MeasureSettings& settings) {
  if (session.is_warm()) {
    return;
  }
  warm_up_with(
      work, [&] { session.context().synchronize("the warm-up"); }, [&] { return session.monitor().sm_mhz(); },
      settings, session.context().facts().max_sm_mhz);
  session.warmed_up();
}

std::optional<std::string> first_run(GpuSession& session, ProblemSetup& setup, const BoundPlan& plan,
                                     bool guarded) {
  if (guarded) {
    setup.poison(verify::kFirstPoison);
  } else {
    setup.restore();
  }
  setup.clear_timed(plan);
  plan.enqueue(session.context().stream());
  if (!guarded) {
    return std::nullopt;
  }
  session.context().synchronize("the variant");
  return setup.find_damage();
}

std::vector<v1::MeasuredItem> measure_blocks(GpuSession& session, const v1::PrepareProblem& problem,
                                             std::span<const TimedWork> works,
                                             const v1::MeasureTrials& request,
                                             const MeasureSettings& settings) {
  const BlockTools tools{session.timer(), [&] { return session.monitor().conditions(); }, session.throttle(),
                         session.context().facts()};
  std::vector<v1::MeasuredItem> measured = measure_blocks(tools, problem, works, request, settings);
  session.worked();
  return measured;
}

}  // namespace cubind::worker
