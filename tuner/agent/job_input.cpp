#include "tuner/agent/job_input.hpp"

#include <map>

#include "base/error.hpp"
#include "tuner/plan/answer_wire.hpp"
#include "tuner/plan/wire.hpp"
#include "tuner/search/order.hpp"
#include "tuner/spec/space.hpp"
#include "tuner/spec/wire.hpp"

namespace cubind {
namespace {

// The winner so far is named by its trial; as keys go by content, it is the candidate that would be the same
// trial today.
std::optional<Configuration> incumbent_of(const v1::LeaseGrant& lease,
                                          const std::vector<Candidate>& candidates) {
  if (lease.incumbent_trial().empty()) {
    return std::nullopt;
  }
  for (const Candidate& candidate : candidates) {
    if (candidate.trial_key.digest.view() == lease.incumbent_trial()) {
      return candidate.configuration;
    }
  }
  return std::nullopt;
}

// In canonical order. Two configurations that make the same machine code and launches are one trial; the
// default, else the earlier one, represents both.
std::vector<Candidate> make_candidates(const JobInput& input, const KernelBuild& build) {
  const TrialContext context{input.spec.get(), input.problem, input.device_class, input.policy,
                             driver_branch(input.driver.version())};
  const auto default_one = default_configuration(*input.spec, input.problem, input.constants);
  std::vector<Candidate> candidates;
  std::map<Digest, std::size_t> seen;
  std::uint32_t number = 0;
  for (const Configuration& configuration : enumerate_valid(*input.spec, input.problem, input.constants)) {
    auto one = candidate_at(input, build, input.problem, configuration);
    const std::uint32_t place = number++;
    if (!one) {
      continue;
    }
    one->number = place;
    one->trial_key = trial_key(context, one->artifact_key, one->plan);
    one->is_default = default_one == one->configuration;
    const auto [at, added] = seen.try_emplace(one->trial_key.digest, candidates.size());
    if (added) {
      candidates.push_back(*std::move(one));
    } else if (one->is_default) {
      candidates[at->second] = *std::move(one);
    }
  }
  return candidates;
}

void order_candidates(const v1::LeaseGrant& lease, std::vector<Candidate>& candidates) {
  SearchHints hints;
  hints.incumbent = incumbent_of(lease, candidates);
  std::vector<Configuration> configurations;
  for (Candidate& candidate : candidates) {
    candidate.incumbent = hints.incumbent == candidate.configuration;
    if (candidate.is_default) {
      hints.preset = candidate.configuration;
    }
    configurations.push_back(candidate.configuration);
  }
  for (const v1::Configuration& hint : lease.hints()) {
    hints.neighbours.push_back(configuration_from_wire(hint, "lease.hints"));
  }
  std::vector<Candidate> ordered;
  for (const std::size_t index : search_order(configurations, hints)) {
    ordered.push_back(std::move(candidates[index]));
  }
  candidates = std::move(ordered);
}

JobInput make_frame(const v1::LeaseGrant& lease, const KernelBuild& build, const v1::DeviceInfo& device) {
  JobInput input;
  input.spec = build.spec();
  input.problem =
      input.spec->canonicalize(problem_from_wire(lease.problem(), "lease.problem"), "lease.problem");
  const DeviceFacts facts = device_facts_from_wire(device.facts());
  input.constants = device_constants(facts);
  input.facts = device.facts();
  input.driver = device.driver();
  input.replayed = !device.facts().replay_table().empty();
  input.device_class = digest_from_wire(lease.device_class(), "lease.device_class");
  input.policy = policy_from_wire(lease.policy());
  input.numerics = numerics_from_wire(lease.numerics());
  input.job_key = digest_from_wire(lease.job_key(), "lease.job_key");
  input.verification = verification_digest(*input.spec);
  input.architecture = architecture(facts, input.spec->arch_features);
  return input;
}

}  // namespace

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
  const auto configuration = default_configuration(*input.spec, problem, input.constants);
  return configuration ? candidate_at(input, build, problem, *configuration) : std::nullopt;
}

JobInput make_job_input(const v1::LeaseGrant& lease, const KernelBuild& build, const v1::DeviceInfo& device) {
  JobInput input = make_frame(lease, build, device);
  input.candidates = make_candidates(input, build);
  if (input.candidates.empty()) {
    throw Error(ErrorCode::FailedPrecondition, input.spec->name + " at " + to_string(input.problem),
                "no configuration satisfies the constraints and the limits of " + device.facts().name());
  }
  order_candidates(lease, input.candidates);
  return input;
}

}  // namespace cubind
