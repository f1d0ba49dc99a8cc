#include "tuner/agent/tuning/job_input.hpp"

#include "base/error.hpp"
#include "plan/answer_wire.hpp"
#include "plan/wire.hpp"
#include "tuner/spec/space_thinning.hpp"
#include "tuner/spec/todays_terms.hpp"
#include "tuner/spec/wire.hpp"

namespace cubind {
namespace {

JobInput make_frame(const v1::LeaseGrant& lease, const std::shared_ptr<const KernelSpec>& spec,
                    const v1::DeviceInfo& device) {
  JobInput input;
  input.spec = spec;
  input.problem =
      input.spec->canonicalize(problem_from_wire(lease.problem(), "lease.problem"), "lease.problem");
  const DeviceFacts& facts = device.facts();
  input.constants = device_constants(facts);
  input.facts = device.facts();
  input.driver = device.driver();
  input.replayed = !device.facts().replay_table().empty();
  input.device_class = digest_from_wire(lease.device_class(), "lease.device_class");
  input.policy = policy_from_wire(lease.policy());
  input.numerics = numerics_from_wire(lease.numerics());
  input.job_key = digest_from_wire(lease.job_key(), "lease.job_key");
  input.untrusted = lease.untrusted();
  input.verification = verification_digest(*input.spec);
  input.architecture = architecture(facts, input.spec->arch_features);
  return input;
}

void add_search(const v1::LeaseGrant& lease, JobInput& input) {
  input.budget = {lease.max_trials(), lease.max_seconds()};
  input.spent_seconds = lease.spent_seconds();
  for (const v1::Configuration& hint : lease.hints()) {
    input.hints.push_back(configuration_from_wire(hint, "lease.hints"));
  }
  for (const v1::Configuration& one : lease.listed()) {
    if (auto todays = in_todays_terms(*input.spec, configuration_from_wire(one, "lease.listed"))) {
      input.listed.push_back(*std::move(todays));
    }
  }
  if (!lease.incumbent_trial().empty()) {
    input.incumbent_trial = digest_from_wire(lease.incumbent_trial(), "lease.incumbent_trial");
    input.incumbent =
        in_todays_terms(*input.spec, configuration_from_wire(lease.incumbent(), "lease.incumbent"));
  }
}

}  // namespace

JobInput make_job_input(const v1::LeaseGrant& lease, const std::shared_ptr<const KernelSpec>& spec,
                        const v1::DeviceInfo& device, const Interrupt& interrupt) {
  JobInput input = make_frame(lease, spec, device);
  const auto preset = default_configuration(*input.spec, input.problem, input.constants);
  if (!preset) {
    const std::string why = what_leaves_none(*input.spec, input.problem, input.constants, interrupt);
    throw Error(ErrorCode::FailedPrecondition, input.spec->name + " at " + to_string(input.problem),
                "no configuration satisfies the constraints and the limits of " + device.facts().name() +
                    (why.empty() ? "" : "; " + why + " leaves none"));
  }
  input.preset = *preset;
  input.space = std::make_shared<const KernelSpace>(*input.spec, input.problem, input.constants, interrupt);
  add_search(lease, input);
  return input;
}

}  // namespace cubind
