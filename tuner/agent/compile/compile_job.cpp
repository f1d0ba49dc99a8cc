#include "tuner/agent/compile/compile_job.hpp"

#include "base/error.hpp"
#include "plan/wire.hpp"
#include "tuner/agent/compile/compile_source.hpp"
#include "tuner/agent/compile/kernel_build.hpp"
#include "tuner/spec/entry_faults.hpp"
#include "tuner/spec/wire.hpp"

namespace cubind {
namespace {

CompileSource::Wanted wanted_of(const KernelBuild& build, const Problem& problem,
                                const Configuration& configuration, const std::string& architecture,
                                CompilePriority priority) {
  const ArtifactSource source = artifact_source(*build.spec(), problem, configuration, architecture);
  return {artifact_key(source, build.identity()), build.identity(),
          [&build, source] { return build.request(source); }, priority};
}

std::vector<CompileSource::Wanted> all_wanted(const v1::LeaseGrant& lease, const KernelBuild& build) {
  const Problem problem =
      build.spec()->canonicalize(problem_from_wire(lease.problem(), "lease.problem"), "lease.problem");
  std::vector<CompileSource::Wanted> wanted;
  for (const v1::Configuration& one : lease.listed()) {
    const Configuration configuration =
        build.spec()->canonicalize(configuration_from_wire(one, "lease.compile"), "lease.compile");
    wanted.push_back(
        wanted_of(build, problem, configuration, lease.architecture(), CompilePriority::Question));
  }
  return wanted;
}

void tell(const std::vector<EntryFault>& faults, v1::CheckResult& result) {
  for (const EntryFault& fault : faults) {
    v1::SpecFault& told = *result.add_faults();
    told.set_pointer(fault.pointer);
    told.set_cause(fault.cause);
    told.set_is_limit(fault.is_limit);
  }
}

// Where no plan can be made, only arguments are compared: the caller has counted the valid configurations.
std::vector<EntryFault> faults_of(const Compiled& compiled, const PlanTemplate& launches,
                                  const v1::CheckOrder& order, const Problem& problem,
                                  const Configuration& configuration) {
  LaunchPlan plan;
  if (!order.device_constants().empty()) {
    const PlanEvaluator evaluator(launches, problem, configuration,
                                  device_constants_from_wire(order.device_constants(), "check"));
    plan = evaluator.evaluate(problem, configuration).plan.value_or(LaunchPlan{});
  }
  return entry_faults(launches, plan, compiled_entries(compiled.cubin, compiled.entries, compiled.symbols));
}

// Without it no configuration of a job is ever verified.
void check_reference(const KernelBuild& build, const Problem& problem, const v1::CheckOrder& order,
                     CompileSource& artifacts, v1::CheckResult& result) {
  if (build.spec()->reference.kind != ReferenceSpec::Kind::Kernel) {
    return;
  }
  const ArtifactSource source = reference_artifact_source(*build.spec(), problem, order.architecture());
  const Compiled& compiled =
      artifacts.get({artifact_key(source, build.reference_identity()), build.reference_identity(),
                     [&build, source] { return build.reference_request(source); }, CompilePriority::Check});
  if (compiled.outcome != v1::CORRECT) {
    tell({{"/reference/source", "does not compile for " + order.architecture() + ": " + compiled.log}},
         result);
    return;
  }
  tell(faults_of(compiled, build.spec()->reference_template(problem), order, problem, {}), result);
}

// What a check compiles is not stored.
class NoChannel final : public JobChannel {
 public:
  void store(v1::Batch) override {}
  void settle() override {}
  void progress(const v1::Progress&) override {}
  void progress_soon(const v1::Progress&) override {}
  std::optional<std::string> fetch_cubin(const Digest&) override { return std::nullopt; }
  void put_artifact(const v1::ArtifactInfo&, const std::string&) override {}
};

}  // namespace

v1::JobResult run_compile_job(const v1::LeaseGrant& lease, const Toolbox& toolbox, JobChannel& channel,
                              JobStop& stop) {
  const Tool& tool = toolbox.choose(wanted_compiler(lease.spec(), lease.driver_cuda(), lease.architecture()));
  const auto kept = tool.builds->of(lease.spec());
  const KernelBuild& build = *kept;
  CompileSource artifacts(*tool.compiles, channel, stop, lease.artifacts());
  const std::vector<CompileSource::Wanted> wanted = all_wanted(lease, build);
  for (const CompileSource::Wanted& one : wanted) {
    artifacts.want(one);
  }

  v1::Progress progress;
  progress.set_stage("compiling");
  progress.set_state(v1::Job::RUNNING);
  progress.set_configurations(static_cast<std::uint32_t>(wanted.size()));
  v1::JobResult result;
  result.set_status(wanted.empty() ? v1::JobResult::DONE : v1::JobResult::FAILED);
  for (const CompileSource::Wanted& one : wanted) {
    stop.check_between_trials();
    const Compiled& compiled = artifacts.get(one);
    progress.set_configurations_done(progress.configurations_done() + 1);
    progress.set_nvrtc_calls(artifacts.nvrtc_calls());
    channel.progress(progress);
    if (compiled.outcome != v1::CORRECT) {
      result.set_error(compiled.log);
      continue;
    }
    v1::Batch batch;
    artifacts.add_to(batch, one.key.digest);
    if (batch.artifacts_size() > 0) {
      channel.store(std::move(batch));
    }
    artifacts.mark_stored(one.key.digest);
    result.set_status(v1::JobResult::DONE);
  }
  if (result.status() == v1::JobResult::DONE) {
    result.clear_error();
  }
  return result;
}

v1::CheckResult run_check(const v1::CheckOrder& order, const Toolbox& toolbox, JobStop& stop) {
  v1::CheckResult result;
  result.set_id(order.id());
  try {
    const Tool& tool = toolbox.choose(wanted_compiler(order.spec(), 0, order.architecture()));
    const auto kept = tool.builds->of(order.spec());
    const KernelBuild& build = *kept;
    const Problem problem =
        build.spec()->canonicalize(problem_from_wire(order.problem(), "check.problem"), "check.problem");
    const Configuration configuration = build.spec()->canonicalize(
        configuration_from_wire(order.configuration(), "check.configuration"), "check.configuration");
    NoChannel nowhere;
    CompileSource artifacts(*tool.compiles, nowhere, stop, {});
    const auto wanted =
        wanted_of(build, problem, configuration, order.architecture(), CompilePriority::Check);
    const Compiled& compiled = artifacts.get(wanted);
    result.set_outcome(compiled.outcome);
    result.set_log(compiled.log);
    if (compiled.outcome != v1::CORRECT) {
      return result;
    }
    tell(faults_of(compiled, build.spec()->plan_template(problem, configuration), order, problem,
                   configuration),
         result);
    if (const Compiler::ResultPtr found = tool.compiles->find(wanted.key.digest)) {
      *result.mutable_writes() = found->reply.writes();
    }
    check_reference(build, problem, order, artifacts, result);
    *result.mutable_info() = upload_of(compiled).info();
    result.mutable_info()->clear_zstd_cubin();
  } catch (const Error& error) {
    if (stop.requested()) {
      throw;
    }
    result.set_outcome(v1::COMPILE);
    result.set_log(error.what());
  }
  return result;
}

}  // namespace cubind
