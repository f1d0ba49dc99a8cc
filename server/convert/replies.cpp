#include "server/convert/replies.hpp"

#include "plan/answer_wire.hpp"
#include "server/store/fact_rows.hpp"
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

}  // namespace

void to_wire(const Generation& from, v1::Generation& to) {
  to.set_store_id(from.store_id);
  to.set_number(from.number);
}

void to_wire(const ServedAnswer& from, v1::GetVariantReply& to) {
  to.set_kernel(from.question.key.kernel);
  to_wire(from.question.key.problem, *to.mutable_problem());
  to_wire(from.candidate.configuration, *to.mutable_configuration());
  to_wire(from.artifact, *to.mutable_artifact());
  add_provenance(from, *to.mutable_provenance());
  add_rule(from, *to.mutable_rule());
  to.set_device(from.question.device.label);
  to.set_device_class(bytes_of(from.question.device.digest));
}

namespace {

std::string note_of(const JobEvent& event) {
  if (!event.refusal.empty()) {
    return "its results could not be stored: " + event.refusal;
  }
  if (event.job.state == v1::Job::WAITING_FOR_IDLE_GPU && !event.waits_because.empty()) {
    return event.waits_because;
  }
  return event.job.state == v1::Job::NO_DEVICE && event.needs.triton ? "needs " + to_string(event.needs)
                                                                     : event.job.shown().note();
}

}  // namespace

void to_wire(const JobEvent& from, v1::Job& to) {
  const JobRow& job = from.job;
  to_wire(job, to);
  to.set_kernel(job.question.kernel);
  to_wire(job.question.problem, *to.mutable_problem());
  to.set_device(from.device);
  to.set_device_class(bytes_of(job.question.device_class));
  to.set_stage(from.stage);
  to.set_waiters(from.waiters);
  to.set_note(note_of(from));
  to_wire(job.question.policy, *to.mutable_policy());
  to_wire(job.question.numerics, *to.mutable_numerics());
  to.set_namespace_(job.question.name_space);
}

void to_wire(const JobEvent& from, const Generation& generation, v1::TuneEvent& to) {
  to_wire(from, *to.mutable_job());
  to.set_best_us(from.best_us);
  *to.mutable_outcomes() = to.job().outcomes();
  if (from.record) {
    to_wire(from.record->configuration, *to.mutable_winner());
    to_wire(*from.record, *to.mutable_provenance());
    to_wire(generation, *to.mutable_provenance()->mutable_generation());
    to.mutable_provenance()->set_measured_device(from.device);
    to.mutable_provenance()->set_same_bytes_measured(true);
    to.set_best_us(from.record->timing.median_us());
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
    if (!argument.tensor_map) {  // the caller passes its buffer
      to_wire(argument, *to.add_arguments());
    }
  }
  for (const NamedValue& flag : from.spec->flags) {
    v1::NamedValue& added = *to.add_flags();
    added.set_name(flag.name);
    added.set_value(flag.value);
  }
}

std::string job_state_name(JobState state) { return std::string(store::state_name(state)); }

}  // namespace cubind
