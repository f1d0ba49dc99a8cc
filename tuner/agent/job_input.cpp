#include "tuner/agent/job_input.hpp"

#include <algorithm>
#include <set>

#include "base/error.hpp"
#include "tuner/plan/wire.hpp"
#include "tuner/search/order.hpp"
#include "tuner/spec/space.hpp"
#include "tuner/spec/wire.hpp"

namespace cubind {
namespace {

// The winner so far is named by its trial; what is stored of that trial says which configuration it was.
std::optional<Configuration> incumbent_of(const v1::LeaseGrant& lease) {
  if (lease.incumbent_trial().empty()) return std::nullopt;
  for (const v1::TrialHeader& trial : lease.trials()) {
    if (trial.trial_key() != lease.incumbent_trial()) continue;
    return configuration_from_wire(trial.configuration(), "lease.trials.configuration");
  }
  return std::nullopt;
}

SearchHints hints_of(const v1::LeaseGrant& lease, const JobInput& input) {
  SearchHints hints;
  hints.incumbent = incumbent_of(lease);
  hints.default_ = default_configuration(*input.spec, input.problem, input.constants);
  for (const v1::Configuration& hint : lease.hints()) {
    hints.neighbours.push_back(configuration_from_wire(hint, "lease.hints"));
  }
  return hints;
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

JobInput make_job_input(const v1::LeaseGrant& lease, const KernelBuild& build, const v1::DeviceInfo& device) {
  JobInput input = make_frame(lease, build, device);
  const std::vector<Configuration> valid = enumerate_valid(*input.spec, input.problem, input.constants);
  const SearchHints hints = hints_of(lease, input);
  const TrialContext context{input.spec.get(), input.problem, input.device_class, input.policy,
                             driver_branch(input.driver.version())};
  std::set<Digest> seen;
  for (const std::size_t index : search_order(valid, hints)) {
    Candidate one;
    one.number = static_cast<std::uint32_t>(index);
    one.configuration = valid[index];
    const auto plan = plan_for(*input.spec, input.problem, one.configuration, input.constants);
    if (!plan || plan->launches.empty()) continue;
    one.plan = *plan;
    one.source = artifact_source(*input.spec, input.problem, one.configuration, input.architecture);
    one.artifact_key = artifact_key(one.source, build.identity());
    one.trial_key = trial_key(context, one.artifact_key, one.plan);
    one.incumbent = hints.incumbent == one.configuration;
    one.is_default = hints.default_ == one.configuration;
    // Two configurations that make the same machine code and launches are one trial; the earlier one stands
    // for both.
    if (seen.insert(one.trial_key.digest).second) input.candidates.push_back(std::move(one));
  }
  if (input.candidates.empty()) {
    throw Error(ErrorCode::FailedPrecondition, input.spec->name + " at " + to_string(input.problem),
                "no configuration satisfies the constraints and the limits of " + device.facts().name());
  }
  return input;
}

const Candidate* default_candidate(const JobInput& input) {
  const auto found = std::find_if(input.candidates.begin(), input.candidates.end(),
                                  [](const Candidate& one) { return one.is_default; });
  return found == input.candidates.end() ? nullptr : &*found;
}

Digest digest_from_wire(const std::string& bytes, std::string_view field) {
  const auto digest = Digest::from_bytes(bytes);
  if (!digest) {
    throw Error(ErrorCode::InvalidArgument, std::string(field),
                "a digest has 32 bytes, this has " + std::to_string(bytes.size()));
  }
  return *digest;
}

}  // namespace cubind
