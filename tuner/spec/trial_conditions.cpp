#include "tuner/spec/trial_conditions.hpp"

#include "tuner/plan/launch_plan.hpp"

namespace cubind {

std::optional<Digest> trial_key_under(const KernelSpec& spec, const Configuration& configuration,
                                      const TrialConditions& conditions) {
  const Problem& problem = conditions.problem;
  const PlanEvaluator evaluator(spec.plan_template(problem, configuration), problem, configuration,
                                conditions.device);
  const PlanResult result = evaluator.evaluate(problem, configuration);
  if (!result.plan || result.plan->launches.empty()) {
    return std::nullopt;
  }
  const Key artifact = artifact_key(artifact_source(spec, problem, configuration, conditions.architecture),
                                    conditions.toolchain);
  const TrialContext context{&spec, problem, conditions.device_class, conditions.policy,
                             driver_branch(conditions.driver)};
  return trial_key(context, artifact, *result.plan).digest;
}

}  // namespace cubind
