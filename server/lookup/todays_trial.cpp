#include "server/lookup/todays_trial.hpp"

#include "tuner/spec/keys.hpp"
#include "tuner/spec/space.hpp"

namespace cubind {

std::optional<Digest> todays_trial_key(const KernelSpec& spec, const RecordRow& record,
                                       const Configuration& configuration, const DeviceFacts& facts) {
  const Problem& problem = record.question.problem;
  const PlanEvaluator evaluator(spec.plan_template(problem, configuration), problem, configuration,
                                device_constants(facts));
  const PlanResult result = evaluator.evaluate(problem, configuration);
  if (!result.plan || result.plan->launches.empty()) {
    return std::nullopt;
  }
  const Key artifact =
      artifact_key(artifact_source(spec, problem, configuration, record.architecture), record.toolchain);
  const TrialContext context{&spec, problem, record.question.device_class, record.question.policy,
                             driver_branch(record.driver.version)};
  return trial_key(context, artifact, *result.plan).digest;
}

std::size_t count_untried(const KernelSpec& spec, const RecordRow& record, const DeviceFacts& facts,
                          const std::set<Digest>& tried) {
  std::set<Digest> untried;  // two configurations that make the same machine code and launches are one trial
  for (const Configuration& configuration :
       enumerate_valid(spec, record.question.problem, device_constants(facts))) {
    const auto key = todays_trial_key(spec, record, configuration, facts);
    if (key && !tried.contains(*key)) {
      untried.insert(*key);
    }
  }
  return untried.size();
}

}  // namespace cubind
