#include "tuner/spec/todays_terms.hpp"

#include <algorithm>

#include "plan/launch_plan.hpp"

namespace cubind {

std::optional<Configuration> in_todays_terms(const KernelSpec& spec, const Configuration& recorded) {
  Configuration configuration;
  for (const Tunable& tunable : spec.tunables) {
    std::optional<std::int64_t> value = recorded.value(tunable.name);
    if (!value && !spec.defaults.empty()) {
      value = spec.defaults.front().value(tunable.name);
    }
    if (!value || std::ranges::find(tunable.values, *value) == tunable.values.end()) {
      return std::nullopt;
    }
    configuration.values.push_back({tunable.name, *value});
  }
  return configuration;
}

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
