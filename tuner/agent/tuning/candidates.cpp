#include "tuner/agent/tuning/candidates.hpp"

#include <utility>

#include "base/error.hpp"
#include "tuner/agent/tuning/job_input.hpp"

namespace cubind {

Candidates::Candidates(const JobInput& input, const KernelBuild& build)
    : input_(input),
      build_(build),
      context_{input.spec.get(), input.problem, input.device_class, input.policy,
               driver_branch(input.driver.version())} {
  const auto space_number = input_.space->number(input_.preset);
  Candidate* preset = space_number ? add(*space_number) : nullptr;
  if (preset == nullptr) {
    throw Error(ErrorCode::FailedPrecondition, input_.spec->name + " at " + to_string(input_.problem),
                "the default configuration launches nothing");
  }
  preset->is_default = true;
  find_listed();
  find_incumbent();
}

void Candidates::find_listed() {
  for (const Configuration& one : input_.listed) {
    const auto space_number = input_.space->number(one);
    if (Candidate* candidate = space_number ? add(*space_number) : nullptr) {
      candidate->listed = true;
    }
  }
}

// The winner so far is named by its trial; as keys go by content, it is the candidate that would be the
// same trial today. A job that measures a record again asks whether its winner still holds, whatever has
// changed since.
void Candidates::find_incumbent() {
  const auto space_number = input_.incumbent ? input_.space->number(*input_.incumbent) : std::nullopt;
  Candidate* candidate = space_number ? add(*space_number) : nullptr;
  if (candidate != nullptr &&
      (candidate->trial_key.digest == input_.incumbent_trial || !input_.listed.empty())) {
    candidate->incumbent = true;
    incumbent_ = candidate;
  }
}

void Candidates::prefer_default() {
  incumbent_->incumbent = false;
  incumbent_ = &all_.front();
  incumbent_->incumbent = true;
}

const Candidate* Candidates::at(std::uint64_t space_number) {
  const auto known = by_space_number_.find(space_number);
  return known == by_space_number_.end() ? add(space_number) : known->second;
}

Candidate* Candidates::add(std::uint64_t space_number) {
  const auto [at, is_new] = by_space_number_.try_emplace(space_number, nullptr);
  if (!is_new) {
    return at->second;
  }
  auto made = candidate_at(input_, build_, input_.problem, input_.space->configuration(space_number));
  if (!made) {
    return nullptr;
  }
  made->trial_key = trial_key(context_, made->artifact_key, made->plan);
  const auto [same, is_another] = by_trial_.try_emplace(made->trial_key.digest, nullptr);
  if (is_another) {
    made->number = static_cast<std::uint32_t>(all_.size());
    made->space_number = space_number;
    same->second = &all_.emplace_back(*std::move(made));
  }
  return at->second = same->second;
}

std::optional<LaunchPlan> plan_for(const KernelSpec& spec, const Problem& problem,
                                   const Configuration& configuration, const DeviceConstants& constants) {
  const PlanEvaluator evaluator(spec.plan_template(problem, configuration), problem, configuration,
                                constants);
  return evaluator.evaluate(problem, configuration).plan;
}

std::optional<Candidate> candidate_at(const JobInput& input, const KernelBuild& build, const Problem& problem,
                                      const Configuration& configuration) {
  auto plan = plan_for(*input.spec, problem, configuration, input.constants);
  if (!plan || plan->launches.empty()) {
    return std::nullopt;
  }
  Candidate one;
  one.configuration = configuration;
  one.plan = *std::move(plan);
  one.source = artifact_source(*input.spec, problem, configuration, input.architecture);
  one.artifact_key = artifact_key(one.source, build.identity());
  return one;
}

std::optional<Candidate> default_at(const JobInput& input, const KernelBuild& build, const Problem& problem) {
  const auto configuration =
      problem == input.problem ? input.preset : default_configuration(*input.spec, problem, input.constants);
  return configuration ? candidate_at(input, build, problem, *configuration) : std::nullopt;
}

}  // namespace cubind
