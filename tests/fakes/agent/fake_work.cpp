#include "tests/fakes/agent/fake_work.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <stdexcept>

#include "base/random.hpp"
#include "base/zstd.hpp"
#include "plan/answer_wire.hpp"
#include "plan/search.hpp"
#include "schemas/limits.hpp"
#include "tests/support/example_facts.hpp"
#include "tests/support/valid_configurations.hpp"
#include "tuner/spec/wire.hpp"

namespace cubind::test {
namespace {

std::shared_ptr<const KernelSpec> spec_of(const v1::LeaseGrant& lease) {
  return parse_kernel_spec(bundle_from_wire(lease.spec()));
}

std::string architecture_of(const v1::LeaseGrant& lease) {
  return lease.architecture().empty() ? architecture(lease.facts(), false) : lease.architecture();
}

v1::ArtifactUpload upload_of(const Key& key, const LaunchPlan& plan, const std::string& architecture,
                             const ToolchainIdentity& toolchain) {
  v1::ArtifactUpload upload;
  upload.set_key(bytes_of(key.digest));
  upload.set_key_full(key.full);
  upload.mutable_info()->set_architecture(architecture);
  upload.mutable_info()->set_toolchain(toolchain.name);
  for (const Launch& launch : plan.launches) {
    upload.add_entries(launch.entry);
    upload.add_entry_symbols("_Z_" + Digest::of(launch.entry).hex().substr(0, 8));
    v1::EntryResources& resources = *upload.mutable_info()->add_entries();
    resources.set_entry_symbol(upload.entry_symbols(upload.entry_symbols_size() - 1));
    resources.set_registers(32);
  }
  upload.set_compile_ms(12.5);
  to_wire(toolchain, *upload.mutable_toolchain());
  set_cubin(upload, fake_cubin(key.full, 2000), true);
  return upload;
}

}  // namespace

v1::DeviceFacts h200_facts() { return example_facts(); }

v1::DriverVersion driver_580() {
  v1::DriverVersion driver;
  driver.set_cuda(13000);
  driver.set_version(kFakeDriver);
  return driver;
}

v1::Hello compiling_hello(const std::string& agent_id) {
  v1::Hello hello;
  hello.set_agent_id(agent_id);
  hello.set_protocol(kAgentProtocol);
  hello.set_compile_jobs(2);
  hello.set_version("0.1.0");
  v1::Toolchain& toolchain = *hello.add_toolchains();
  toolchain.set_name("nvrtc 13.0");
  toolchain.set_major(13);
  toolchain.set_minor(0);
  for (const char* architecture : {"sm_80", "sm_90", "sm_100"}) {
    toolchain.add_architectures(architecture);
  }
  return hello;
}

v1::Hello hello_with(const v1::DeviceFacts& facts, const std::string& agent_id) {
  v1::Hello hello = compiling_hello(agent_id);
  v1::OfferedDevice& device = *hello.add_devices();
  device.set_uuid("GPU-" + agent_id);
  *device.mutable_facts() = facts;
  *device.mutable_driver() = driver_580();
  device.set_consent("idle (NVML processes)");
  device.set_trial_memory_bytes(std::uint64_t{100} << 30);
  return hello;
}

void offer_triton(v1::Hello& hello, const std::string& version, const std::string& ptxas) {
  v1::Toolchain& toolchain = *hello.add_toolchains();
  toolchain.set_name("triton " + version);
  for (const char* architecture : {"sm_80", "sm_90"}) {
    toolchain.add_architectures(architecture);
    toolchain.add_assemblers(ptxas);
  }
}

ToolchainIdentity toolchain_for(const v1::LeaseGrant& lease) {
  const auto spec = spec_of(lease);
  return spec->triton ? triton_identity(*spec->triton) : fake_toolchain();
}

ToolchainIdentity fake_toolchain(std::string_view name) {
  return {std::string(name), Digest::of(std::string(name) + " nvrtc"),
          Digest::of(std::string(name) + " builtins"), Digest::of("headers")};
}

FakeTrial fake_trial(const v1::LeaseGrant& lease, const Configuration& configuration,
                     const ToolchainIdentity& toolchain, const std::string& driver) {
  const auto spec = spec_of(lease);
  const Problem problem = problem_from_wire(lease.problem(), "lease.problem");
  const DeviceFacts& facts = lease.facts();
  const std::string architecture = architecture_of(lease);
  const PlanEvaluator evaluator(spec->plan_template(problem, configuration), problem, configuration,
                                device_constants(facts));
  const PlanResult result = evaluator.evaluate(problem, configuration);
  if (!result.plan) {
    throw std::logic_error("the fake's configuration is not valid: " + result.violation);
  }
  FakeTrial trial;
  trial.configuration = configuration;
  trial.artifact_key = artifact_key(artifact_source(*spec, problem, configuration, architecture), toolchain);
  const TrialContext context{spec.get(), problem, *Digest::from_bytes(lease.device_class()),
                             policy_from_wire(lease.policy()), driver_branch(driver)};
  trial.trial_key = trial_key(context, trial.artifact_key, *result.plan);
  trial.verification = verification_digest(*spec);
  trial.artifact = upload_of(trial.artifact_key, *result.plan, architecture, toolchain);
  trial.header.set_trial_key(bytes_of(trial.trial_key.digest));
  trial.header.set_trial_key_full(trial.trial_key.full);
  trial.header.set_artifact_key(bytes_of(trial.artifact_key.digest));
  to_wire(configuration, *trial.header.mutable_configuration());
  *trial.header.mutable_problem() = lease.problem();
  trial.header.set_outcome(v1::CORRECT);
  to_wire(toolchain, *trial.header.mutable_toolchain());
  return trial;
}

std::vector<FakeTrial> fake_trials(const v1::LeaseGrant& lease, std::size_t count,
                                   const ToolchainIdentity& toolchain, const std::string& driver) {
  const auto spec = spec_of(lease);
  const Problem problem = problem_from_wire(lease.problem(), "lease.problem");
  const DeviceConstants constants = device_constants(lease.facts());
  std::vector<FakeTrial> trials;
  const auto first = default_configuration(*spec, problem, constants);
  if (first) {
    trials.push_back(fake_trial(lease, *first, toolchain, driver));
  }
  for (const Configuration& configuration : valid_configurations(*spec, problem, constants)) {
    if (trials.size() >= count) {
      break;
    }
    if (configuration != first) {
      trials.push_back(fake_trial(lease, configuration, toolchain, driver));
    }
  }
  return trials;
}

v1::SampleBlock block_of(const FakeTrial& trial, unsigned index, double time_us) {
  v1::SampleBlock block;
  block.set_trial_key(trial.header.trial_key());
  block.set_stage(v1::SampleBlock::FINAL);
  block.set_index(index);
  for (unsigned i = 0; i < kFakeSamples; ++i) {
    block.add_samples_us(time_us + 0.1 * (static_cast<double>(i % 3) - 1));
  }
  block.mutable_conditions()->set_sm_mhz(1980);
  block.set_timer("cupti");
  block.set_tick_us(0.032);
  return block;
}

v1::VerificationResult verification_of(const FakeTrial& trial) {
  v1::VerificationResult result;
  result.set_trial_key(trial.header.trial_key());
  result.set_verification_digest(bytes_of(trial.verification));
  *result.mutable_problem() = trial.header.problem();
  result.set_outcome(v1::CORRECT);
  result.set_reference("kernel");
  result.set_worst_excess(0.5);
  result.set_same_bits(true);
  return result;
}

v1::Batch batch_of(const std::vector<FakeTrial>& trials, unsigned blocks, double time_us) {
  v1::Batch batch;
  for (const FakeTrial& trial : trials) {
    *batch.add_trials() = trial.header;
    *batch.add_artifacts() = trial.artifact;
    *batch.add_verifications() = verification_of(trial);
    for (unsigned index = 0; index < blocks; ++index) {
      *batch.add_blocks() = block_of(trial, index, time_us);
    }
  }
  return batch;
}

v1::JobResult result_of(const v1::LeaseGrant& lease, const FakeTrial& winner, double median_us) {
  v1::JobResult result;
  result.set_status(v1::JobResult::DONE);
  result.set_winner_trial(winner.header.trial_key());
  *result.mutable_winner() = winner.header.configuration();
  *result.mutable_measured_problem() = lease.problem();
  v1::SearchSummary& search = *result.mutable_search();
  search.set_space(bytes_of(space_digest(*spec_of(lease), problem_from_wire(lease.problem(), "lease.problem"),
                                         device_constants(lease.facts()))));
  search.set_strategy(std::string(kExhaustiveSearch));
  search.set_complete(true);
  v1::Provenance& provenance = *result.mutable_provenance();
  provenance.mutable_verification()->set_digest(
      bytes_of(verification_digest(*spec_of(lease), numerics_from_wire(lease.numerics()))));
  provenance.mutable_timing()->set_measured_at("2024-11-21T12:00:00Z");
  provenance.mutable_timing()->set_median_us(median_us);
  provenance.mutable_timing()->set_low_us(median_us - 0.1);
  provenance.mutable_timing()->set_high_us(median_us + 0.1);
  provenance.mutable_timing()->set_samples(kFakeSamples);
  provenance.mutable_timing()->set_sm_mhz(1980);
  provenance.mutable_timing()->set_gain_over_default(1.0);
  provenance.mutable_timing()->set_timer("cupti");
  provenance.mutable_timing()->set_tick_us(0.032);
  provenance.mutable_timing()->set_power_limit_mw(700000);
  provenance.mutable_verification()->set_verified(true);
  provenance.mutable_verification()->set_reference("kernel");
  provenance.mutable_verification()->set_worst_excess(0.5);
  *provenance.mutable_verification()->add_problems() = lease.problem();
  provenance.mutable_verification()->set_same_bits(true);
  provenance.mutable_verification()->set_after_timing(true);
  v1::OutcomeCount& outcomes = *result.add_outcomes();
  outcomes.set_outcome(v1::CORRECT);
  outcomes.set_count(3);
  result.add_finalists(winner.header.trial_key());
  return result;
}

std::string fake_cubin(std::string_view seed, std::size_t bytes) {
  Random random(Digest::of(seed));
  std::string cubin =
      "\x7f"
      "ELF";
  while (cubin.size() < bytes) {
    const std::uint64_t value = random.next();
    cubin.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  return cubin;
}

void set_cubin(v1::ArtifactUpload& upload, const std::string& cubin, bool inline_bytes) {
  v1::ArtifactInfo& info = *upload.mutable_info();
  info.set_digest(bytes_of(Digest::of(cubin)));
  info.set_cubin_bytes(cubin.size());
  info.clear_zstd_cubin();
  if (inline_bytes) {
    info.set_zstd_cubin(zstd_compress(cubin));
  }
}

}  // namespace cubind::test
