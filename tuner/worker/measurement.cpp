#include "tuner/worker/measurement.hpp"

#include <memory>
#include <utility>

#include "plan/wire.hpp"
#include "tuner/spec/wire.hpp"
#include "tuner/worker/sample_block.hpp"
#include "tuner/worker/verification.hpp"

namespace cubind::worker {

TimedWork timed_work(GpuSession& session, ProblemSetup& setup, const LoadedModule& module,
                     const v1::LaunchPlan& plan, const Distrust& distrust) {
  const Policy policy = policy_from_wire(setup.request().policy(), "policy");
  const auto launches = std::make_shared<const LaunchPlan>(plan_from_wire(plan, "measure.plan"));
  auto bound = std::make_shared<std::optional<BoundPlan>>(setup.bind(module, *launches));
  SampleSteps steps;
  if (setup.slots() > 1 || distrust.poisons) {
    steps.move = [&session, &setup, &module, launches, bound, distrust] {
      setup.next_slot();
      if (distrust.input_seed != 0) {
        setup.renew_inputs(distrust.input_seed);
        session.kernels().wipe_shared();
      }
      if (distrust.input_seed != 0 && distrust.state != nullptr) {
        distrust.state->restore();
      }
      bound->emplace(setup.bind(module, *launches));  // copies inputs to variables
    };
    steps.move_kernels = distrust.input_seed != 0 ? setup.renewals() + OwnKernels::kWipeKernels : 0;
  }
  if (distrust.poisons) {
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

bool leaves_results(GpuSession& session) { return session.timer().name() == "cupti"; }

std::string fault_of_sample(ProblemSetup& setup, std::uint32_t back, std::uint64_t input_seed) {
  const std::string when = "right when it was verified, wrong when it was timed: ";
  setup.return_to(back);
  if (const auto changed = setup.find_changed_input(input_seed)) {
    return when + *changed;
  }
  for (const OutputComparison& output : setup.compare_timed()) {
    if (!output.result.passed()) {
      return when + explain(output);
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
