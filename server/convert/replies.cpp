#include "server/convert/replies.hpp"

#include "server/store/columns.hpp"
#include "tuner/plan/answer_wire.hpp"
#include "tuner/plan/evidence_wire.hpp"
#include "tuner/spec/wire.hpp"

namespace cubind {
namespace {

void add_provenance(const ServedAnswer& from, v1::Provenance& to) {
  if (from.candidate.record) {
    to_wire(*from.candidate.record, to);
  }
  to.set_evidence(to_wire(from.candidate.evidence));
  to_wire(from.candidate.match, *to.mutable_departures());
  to_wire(from.generation, *to.mutable_generation());
  to.set_measured_device(from.measured_device);
  to.mutable_verification()->set_verified(from.verified);
  to.set_same_bytes_measured(from.same_bytes_measured);
}

void add_rule(const ServedAnswer& from, v1::Rule& to) {
  to_wire(from.plan_template, device_constants(from.question.device.facts), to);
  const auto& dims = from.question.key.problem.dims;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    v1::Interval& interval = *to.add_intervals();
    interval.set_dim(dims[i].name);
    interval.set_lower(from.intervals[i].lower);
    interval.set_upper(from.intervals[i].upper);
  }
  for (const Problem& problem : from.own_records) {
    to_wire(problem, *to.add_own_records());
  }
  to.mutable_conditions()->Assign(from.conditions.begin(), from.conditions.end());
}

void add_outcomes(const JobRow& job, google::protobuf::RepeatedPtrField<v1::OutcomeCount>& to) {
  for (const OutcomeCount& outcome : job.outcomes) {
    v1::OutcomeCount& wire = *to.Add();
    wire.set_outcome(to_wire(outcome.outcome));
    wire.set_count(outcome.count);
  }
}

}  // namespace

void to_wire(const Generation& from, v1::Generation& to) {
  to.set_store_id(from.store_id);
  to.set_number(from.number);
}

void to_wire(const DriverVersion& from, v1::DriverVersion& to) {
  to.set_cuda(from.cuda);
  to.set_version(from.version);
}

void to_wire(const ArtifactRow& from, v1::ArtifactInfo& to) {
  to.set_digest(bytes_of(from.cubin));
  to.set_architecture(from.architecture);
  to.set_cubin_bytes(from.cubin_bytes);
  to.set_key(bytes_of(from.key.digest));
  to.set_toolchain(from.toolchain.name);
  for (const EntryResources& entry : from.resources) {
    to_wire(entry, *to.add_entries());
  }
}

void to_wire(const RecordRow& from, v1::Provenance& to) {
  to.set_evidence(to_wire(from.evidence));
  to.set_provisional(from.provisional);
  to_wire(from.question.problem, *to.mutable_measured_problem());
  to.set_measured_device_class(bytes_of(from.question.device_class));
  to_wire(from.driver, *to.mutable_driver());
  to.set_toolchain(from.toolchain.name);
  to_wire(from.timing, to);
  to_wire(from.verification, *to.mutable_verification());
  for (const LibraryComparison& comparison : from.over_library) {
    to_wire(comparison, *to.add_over_library());
  }
}

void to_wire(const ServedAnswer& from, v1::GetVariantReply& to) {
  to.set_kernel(from.question.key.kernel);
  to_wire(from.question.key.problem, *to.mutable_problem());
  to_wire(from.candidate.configuration, *to.mutable_configuration());
  to_wire(from.plan, *to.mutable_plan());
  to_wire(from.artifact, *to.mutable_artifact());
  add_provenance(from, *to.mutable_provenance());
  add_rule(from, *to.mutable_rule());
  to.set_device(from.question.device.label);
  to.set_device_class(bytes_of(from.question.device.digest));
}

static_assert(static_cast<int>(JobKind::Tune) == v1::Job::TUNE);
static_assert(static_cast<int>(JobKind::CompileWinner) == v1::Job::COMPILE_WINNER);
v1::Job::Kind to_wire(JobKind from) { return static_cast<v1::Job::Kind>(from); }

static_assert(static_cast<int>(JobState::Queued) == v1::Job::QUEUED);
static_assert(static_cast<int>(JobState::Running) == v1::Job::RUNNING);
static_assert(static_cast<int>(JobState::NoDevice) == v1::Job::NO_DEVICE);
static_assert(static_cast<int>(JobState::WaitingForIdleGpu) == v1::Job::WAITING_FOR_IDLE_GPU);
static_assert(static_cast<int>(JobState::Done) == v1::Job::DONE);
static_assert(static_cast<int>(JobState::Failed) == v1::Job::FAILED);
static_assert(static_cast<int>(JobState::Cancelled) == v1::Job::CANCELLED);
v1::Job::State to_wire(JobState from) { return static_cast<v1::Job::State>(from); }

namespace {

std::string note_of(const JobEvent& event) {
  if (!event.refusal.empty()) {
    return "its results could not be stored: " + event.refusal;
  }
  if (event.job.state == JobState::WaitingForIdleGpu && !event.waits_because.empty()) {
    return event.waits_because;
  }
  return event.job.state == JobState::NoDevice && event.needs.triton ? "needs " + to_string(event.needs)
                                                                     : event.job.note;
}

}  // namespace

void to_wire(const JobEvent& from, v1::Job& to) {
  const JobRow& job = from.job;
  to.set_id(job.id);
  to.set_kind(to_wire(job.kind));
  to.set_kernel(job.question.kernel);
  to_wire(job.question.problem, *to.mutable_problem());
  to.set_device(from.device);
  to.set_device_class(bytes_of(job.question.device_class));
  to.set_state(to_wire(job.state));
  to.set_stage(from.stage);
  to.set_configurations(job.configurations);
  to.set_configurations_done(job.configurations_done);
  to.set_nvrtc_calls(job.nvrtc_calls);
  to.set_error(job.error);
  to.set_created_at(job.created_at);
  to.set_finished_at(job.finished_at);
  to.set_elapsed_ms(job.elapsed_ms);
  to.set_waiters(from.waiters);
  to.set_note(note_of(from));
  to_wire(job.question.policy, *to.mutable_policy());
  to_wire(job.question.numerics, *to.mutable_numerics());
  to.set_namespace_(job.question.name_space);
  to.set_max_trials(job.budget.max_trials);
  to.set_max_seconds(job.budget.max_seconds);
  for (const StageTime& stage : job.stages) {
    v1::StageTime& wire = *to.add_stages();
    wire.set_stage(stage.stage);
    wire.set_ms(stage.ms);
  }
  add_outcomes(job, *to.mutable_outcomes());
}

void to_wire(const JobEvent& from, const Generation& generation, v1::TuneEvent& to) {
  to_wire(from, *to.mutable_job());
  to.set_best_us(from.best_us);
  add_outcomes(from.job, *to.mutable_outcomes());
  if (from.record) {
    to_wire(from.record->configuration, *to.mutable_winner());
    to_wire(*from.record, *to.mutable_provenance());
    to_wire(generation, *to.mutable_provenance()->mutable_generation());
    to.mutable_provenance()->set_measured_device(from.device);
    to.mutable_provenance()->set_same_bytes_measured(true);
    to.set_best_us(from.record->timing.median_us);
  }
}

void to_wire(const KernelEntry& from, const RecordCount& records, v1::Kernel& to) {
  to.set_name(from.name);
  to.set_file(from.file);
  to.set_records(records.all);
  to.set_shipped_records(records.shipped);
  to.set_error(from.error);
  if (!from.spec) {
    return;
  }
  to.set_keeps_last_good(!from.error.empty());
  to.set_interface_digest(bytes_of(from.interface));
  for (const DimSpec& dim : from.spec->dims) {
    to.add_dims(dim.name);
  }
  for (const TypeSpec& type : from.spec->types) {
    std::string choices;
    for (const DType choice : type.choices) {
      choices += (choices.empty() ? "" : "|") + std::string(to_string(choice));
    }
    to.add_types(type.name + "=" + choices);
  }
  for (const Tunable& tunable : from.spec->tunables) {
    to.add_tunables(tunable.name);
  }
  for (const ArgumentSpec& argument : from.spec->arguments) {
    to_wire(argument, *to.add_arguments());
  }
  for (const NamedValue& flag : from.spec->flags) {
    v1::NamedValue& added = *to.add_flags();
    added.set_name(flag.name);
    added.set_value(flag.value);
  }
}

std::string job_state_name(JobState state) { return std::string(store::state_name(state)); }

}  // namespace cubind
