#include "server/store/row_facts.hpp"

#include "base/error.hpp"
#include "base/text.hpp"
#include "plan/wire_fields.hpp"

namespace cubind {
namespace {

DriverVersion driver_of(const v1::DriverVersion& from) { return {from.cuda(), from.version()}; }

template <typename Item>
std::vector<Item> list_of(const google::protobuf::RepeatedPtrField<Item>& from) {
  return {from.begin(), from.end()};
}

template <typename Read>
auto parsed(const std::string& text, std::string_view field, Read read) {
  const auto value = read(text);
  if (!value) {
    throw Error(ErrorCode::InvalidArgument, std::string(field), quoted(text) + " is not known");
  }
  return *value;
}

void add_question(const RecordQuestion& from, v1::Question& to) {
  to.set_kernel(from.kernel);
  to.set_interface(bytes_of(from.interface));
  to_wire(from.problem, *to.mutable_problem());
  to.set_device_class(bytes_of(from.device_class));
  to.set_policy(to_string(from.policy));
  to.set_numerics(to_string(from.numerics));
  to.set_namespace_(from.name_space);
}

RecordQuestion question_of(const v1::Question& from) {
  return {from.kernel(),
          digest_from_wire(from.interface(), "interface"),
          problem_from_wire(from.problem(), "problem"),
          digest_from_wire(from.device_class(), "device_class"),
          parsed(from.policy(), "policy", parse_policy),
          parsed(from.numerics(), "numerics", parse_numerics),
          from.namespace_()};
}

void set_all(const std::vector<Configuration>& from,
             google::protobuf::RepeatedPtrField<v1::Configuration>& to) {
  to.Clear();
  for (const Configuration& configuration : from) {
    to_wire(configuration, *to.Add());
  }
}

std::vector<Configuration> configurations_of(
    const google::protobuf::RepeatedPtrField<v1::Configuration>& from, std::string_view field) {
  std::vector<Configuration> all;
  for (const v1::Configuration& configuration : from) {
    all.push_back(configuration_from_wire(configuration, field));
  }
  return all;
}

/// A daemon of a later version may have added fields.
std::string unknown_fields_of(const google::protobuf::Message& fact) {
  std::string bytes;
  fact.GetReflection()->GetUnknownFields(fact).SerializeToString(&bytes);
  return bytes;
}

void set_unknown_fields(const std::string& bytes, google::protobuf::Message& fact) {
  fact.GetReflection()->MutableUnknownFields(&fact)->ParseFromString(bytes);
}

}  // namespace

void to_wire(const DriverVersion& from, v1::DriverVersion& to) {
  to.set_cuda(from.cuda);
  to.set_version(from.version);
}

void to_wire(const TrialRow& from, v1::TrialHeader& to) {
  to = from.header();
  to.set_trial_key(bytes_of(from.key.digest));
  to.set_trial_key_full(from.key.full);
  to.set_artifact_key(from.artifact_key ? bytes_of(*from.artifact_key) : "");
  to_wire(from.configuration, *to.mutable_configuration());
  to_wire(from.problem, *to.mutable_problem());
  to.set_outcome(to_wire(from.outcome));
  to.set_measured_as(from.measured_as ? bytes_of(*from.measured_as) : "");
  to_wire(from.toolchain, *to.mutable_toolchain());
}

TrialRow trial_from_wire(const v1::TrialHeader& from, const std::string& field) {
  TrialRow trial;
  trial.key = {digest_from_wire(from.trial_key(), field + ".trial_key"), from.trial_key_full()};
  if (!from.artifact_key().empty()) {
    trial.artifact_key = digest_from_wire(from.artifact_key(), field + ".artifact_key");
  }
  trial.configuration = configuration_from_wire(from.configuration(), field + ".configuration");
  trial.problem = problem_from_wire(from.problem(), field + ".problem");
  trial.outcome = outcome_from_wire(from.outcome(), field + ".outcome");
  if (!from.measured_as().empty()) {
    trial.measured_as = digest_from_wire(from.measured_as(), field + ".measured_as");
  }
  if (from.has_toolchain()) {
    trial.toolchain = toolchain_from_wire(from.toolchain(), field + ".toolchain");
  }
  trial.header() = from;
  return trial;
}

bool operator==(const TrialRow& a, const TrialRow& b) { return store::fact_of(a) == store::fact_of(b); }

void to_wire(const ArtifactRow& from, v1::ArtifactInfo& to) {
  to.set_digest(bytes_of(from.cubin));
  to.set_architecture(from.architecture);
  to.set_cubin_bytes(from.cubin_bytes);
  to.set_key(bytes_of(from.key.digest));
  to.set_toolchain(from.toolchain.name);
  to.mutable_entries()->Assign(from.resources.begin(), from.resources.end());
}

void to_wire(const ArtifactRow& from, v1::ArtifactUpload& to) {
  to.set_key(bytes_of(from.key.digest));
  to.set_key_full(from.key.full);
  to_wire(from, *to.mutable_info());
  to.mutable_entries()->Assign(from.entries.begin(), from.entries.end());
  to.mutable_entry_symbols()->Assign(from.entry_symbols.begin(), from.entry_symbols.end());
  to.set_compile_ms(from.compile_ms);
  to_wire(from.toolchain, *to.mutable_toolchain());
}

ArtifactRow artifact_from_wire(const v1::ArtifactUpload& from, const std::string& field) {
  ArtifactRow row;
  row.key = {digest_from_wire(from.key(), field + ".key"), from.key_full()};
  row.cubin = digest_from_wire(from.info().digest(), field + ".info.digest");
  row.architecture = from.info().architecture();
  row.cubin_bytes = from.info().cubin_bytes();
  row.entries = list_of(from.entries());
  row.entry_symbols = list_of(from.entry_symbols());
  row.resources = list_of(from.info().entries());
  row.toolchain = toolchain_from_wire(from.toolchain(), field + ".toolchain");
  row.compile_ms = from.compile_ms();
  return row;
}

void to_wire(const RecordRow& from, v1::Provenance& to) {
  to.set_evidence(to_wire(from.evidence));
  to.set_provisional(from.provisional);
  to_wire(from.question.problem, *to.mutable_measured_problem());
  to.set_measured_device_class(bytes_of(from.question.device_class));
  to_wire(from.driver, *to.mutable_driver());
  to.set_toolchain(from.toolchain.name);
  *to.mutable_timing() = from.timing;
  *to.mutable_verification() = from.verification;
  to.mutable_over_library()->Assign(from.over_library.begin(), from.over_library.end());
}

void to_wire(const JobRow& from, v1::Job& to) {
  to = from.shown();
  to.set_id(from.id);
  to.set_kind(from.kind);
  to.set_state(from.state);
  to.set_max_trials(from.budget.max_trials);
  to.set_max_seconds(from.budget.max_seconds);
}

namespace store {

v1::StoredDeviceClass fact_of(const DeviceClass& row) {
  v1::StoredDeviceClass fact;
  fact.set_full_key(row.full);
  fact.set_label(row.label);
  *fact.mutable_facts() = row.facts;
  return fact;
}

DeviceClass row_of(const v1::StoredDeviceClass& fact) {
  return {Digest::of(fact.full_key()), fact.full_key(), fact.label(), fact.facts()};
}

v1::StoredArtifact fact_of(const ArtifactRow& row) {
  v1::StoredArtifact fact;
  to_wire(row, *fact.mutable_artifact());
  fact.set_kernel(row.kernel);
  return fact;
}

ArtifactRow row_of(const v1::StoredArtifact& fact) {
  ArtifactRow row = artifact_from_wire(fact.artifact(), "artifact");
  row.kernel = fact.kernel();
  return row;
}

v1::StoredTrial fact_of(const TrialRow& row) {
  v1::StoredTrial fact = row.fact;
  to_wire(row, *fact.mutable_trial());
  fact.set_imported(row.origin == Origin::Import);
  fact.set_series(row.series);
  fact.set_job(row.job_id);
  fact.set_kernel(row.kernel);
  fact.set_source(bytes_of(row.source));
  fact.set_device_class(bytes_of(row.device_class));
  fact.set_policy(to_string(row.policy));
  to_wire(row.driver, *fact.mutable_driver());
  fact.set_cubin(bytes_of(row.cubin));
  return fact;
}

TrialRow row_of(v1::StoredTrial fact) {
  TrialRow row = trial_from_wire(fact.trial(), "trial");
  row.origin = static_cast<Origin>(fact.imported());
  row.series = fact.series();
  row.job_id = fact.job();
  row.kernel = fact.kernel();
  row.source = digest_from_wire(fact.source(), "source");
  row.device_class = digest_from_wire(fact.device_class(), "device_class");
  row.policy = parsed(fact.policy(), "policy", parse_policy);
  row.driver = driver_of(fact.driver());
  row.cubin = digest_from_wire(fact.cubin(), "cubin");
  row.fact = std::move(fact);
  return row;
}

v1::StoredRecord fact_of(const RecordRow& row) {
  v1::StoredRecord fact;
  add_question(row.question, *fact.mutable_question());
  fact.set_from_generation(row.from_generation);
  to_wire(row.configuration, *fact.mutable_configuration());
  fact.set_trial(bytes_of(row.trial));
  fact.set_cubin(bytes_of(row.cubin));
  fact.set_architecture(row.architecture);
  to_wire(row.toolchain, *fact.mutable_toolchain());
  to_wire(row, *fact.mutable_provenance());
  for (const Digest& finalist : row.finalists) {
    fact.add_finalists(bytes_of(finalist));
  }
  *fact.mutable_search() = row.search;
  fact.set_job(row.job_id);
  set_unknown_fields(row.unknown_fields, fact);
  return fact;
}

RecordRow row_of(const v1::StoredRecord& fact) {
  RecordRow row;
  const v1::Provenance& provenance = fact.provenance();
  row.question = question_of(fact.question());
  row.from_generation = fact.from_generation();
  row.configuration = configuration_from_wire(fact.configuration(), "configuration");
  row.trial = digest_from_wire(fact.trial(), "trial");
  row.cubin = digest_from_wire(fact.cubin(), "cubin");
  row.architecture = fact.architecture();
  row.toolchain = toolchain_from_wire(fact.toolchain());
  row.driver = driver_of(provenance.driver());
  row.evidence = evidence_from_wire(provenance.evidence(), "provenance.evidence");
  row.provisional = provenance.provisional();
  row.timing = provenance.timing();
  row.verification = provenance.verification();
  row.over_library = list_of(provenance.over_library());
  for (const std::string& finalist : fact.finalists()) {
    row.finalists.push_back(digest_from_wire(finalist, "finalists"));
  }
  row.search = fact.search();
  row.job_id = fact.job();
  row.unknown_fields = unknown_fields_of(fact);
  return row;
}

v1::StoredJob fact_of(const JobRow& row) {
  v1::StoredJob fact = row.fact;
  to_wire(row, *fact.mutable_job());
  fact.set_key(bytes_of(row.key));
  add_question(row.question, *fact.mutable_question());
  fact.set_record_trial(bytes_of(row.record_trial));
  set_all(row.listed, *fact.mutable_listed());
  set_all(row.hints, *fact.mutable_hints());
  return fact;
}

JobRow row_of(v1::StoredJob fact) {
  JobRow row;
  const v1::Job& job = fact.job();
  row.id = job.id();
  row.kind = job.kind();
  row.key = digest_from_wire(fact.key(), "key");
  row.question = question_of(fact.question());
  row.state = job.state();
  row.record_trial = digest_from_wire(fact.record_trial(), "record_trial");
  row.listed = configurations_of(fact.listed(), "listed");
  row.budget = {job.max_trials(), job.max_seconds()};
  row.hints = configurations_of(fact.hints(), "hints");
  row.fact = std::move(fact);
  return row;
}

v1::StoredWant fact_of(const WantRow& row) {
  v1::StoredWant fact;
  add_question(row.question, *fact.mutable_question());
  fact.set_first_at(row.first_at);
  return fact;
}

WantRow row_of(const v1::StoredWant& fact) {
  WantRow row;
  row.question = question_of(fact.question());
  row.first_at = fact.first_at();
  return row;
}

}  // namespace store
}  // namespace cubind
