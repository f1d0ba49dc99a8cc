#include "client/cubindctl/json_output.hpp"

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "tuner/plan/evidence_json.hpp"
#include "tuner/plan/evidence_wire.hpp"
#include "tuner/spec/wire.hpp"

namespace cubind::ctl {
namespace {

OutputJson dim_json(const Dim3& dim) { return {dim.x, dim.y, dim.z}; }

OutputJson parameter_json(const Parameter& parameter) {
  OutputJson json{{"name", parameter.name},
                  {"kind", parameter.source == ParameterSource::Buffer ? "buffer" : "scalar"},
                  {"type", to_string(parameter.type)}};
  if (parameter.source == ParameterSource::Buffer) {
    json["role"] = parameter.role == Role::In      ? "in"
                   : parameter.role == Role::Out   ? "out"
                   : parameter.role == Role::InOut ? "inout"
                   : parameter.role == Role::Zero  ? "zero"
                                                   : "scratch";
    json["size_bytes"] = parameter.extent_bytes;
    json["align_bytes"] = parameter.align_bytes;
    if (!parameter.shape.empty()) {
      json["shape"] = parameter.shape;
    }
  } else if (parameter.source == ParameterSource::Value) {
    json["value"] = parameter.value;  // absent: the caller's
  }
  return json;
}

OutputJson verification_json(const VerificationSummary& verification) {
  OutputJson problems = OutputJson::array();
  for (const Problem& problem : verification.problems) {
    problems.push_back(json_of(problem));
  }
  return {{"verified", verification.verified},
          {"reference", verification.reference},
          {"worst_excess_ratio", verification.worst_excess},
          {"same_bits", verification.same_bits},
          {"after_timing", verification.after_timing},
          {"problems", problems}};
}

OutputJson rule_json(const v1::Rule& rule) {
  OutputJson intervals = OutputJson::array();
  for (const v1::Interval& interval : rule.intervals()) {
    intervals.push_back({{"dim", interval.dim()}, {"lower", interval.lower()}, {"upper", interval.upper()}});
  }
  OutputJson own = OutputJson::array();
  for (const v1::Problem& problem : rule.own_records()) {
    own.push_back(json_of(problem_from_wire(problem, "rule.own_records")));
  }
  return {{"intervals", intervals}, {"own_records", own}, {"constraints", rule.constraints()}};
}

std::string lower_case(std::string name) {
  std::ranges::transform(name, name.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; });
  return name;
}

OutputJson strings(const google::protobuf::RepeatedPtrField<std::string>& from) {
  return std::vector<std::string>(from.begin(), from.end());
}

OutputJson departures_of(const Match& match) {
  OutputJson names = OutputJson::array();
  for (const Departure departure : match.departures()) {
    names.push_back(to_string(departure));
  }
  return names;
}

}  // namespace

std::string hex(const std::string& bytes) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text;
  for (const char byte : bytes) {
    const auto value = static_cast<unsigned char>(byte);
    text += kDigits[value >> 4];
    text += kDigits[value & 15];
  }
  return text;
}

std::string state_name(v1::Job::State state) {
  const std::string name = lower_case(v1::Job::State_Name(state));
  return name.empty() ? std::to_string(state) : name;
}

std::string evidence_name(v1::Evidence evidence) {
  const bool known = evidence >= 0 && evidence <= static_cast<int>(Evidence::Measured);
  return known ? std::string(to_string(static_cast<Evidence>(evidence))) : std::to_string(evidence);
}

OutputJson json_of(const Problem& problem) {
  OutputJson json = OutputJson::object();
  for (const NamedValue& dim : problem.dims) {
    json[dim.name] = dim.value;
  }
  for (const TypeBinding& type : problem.types) {
    json[type.name] = to_string(type.type);
  }
  for (const NamedValue& flag : problem.flags) {
    json[flag.name] = flag.value != 0;
  }
  if (!problem.scenario.empty()) {
    json["scenario"] = problem.scenario;
  }
  return json;
}

OutputJson json_of(const Configuration& configuration) {
  OutputJson json = OutputJson::object();
  for (const NamedValue& value : configuration.values) {
    json[value.name] = value.value;
  }
  return json;
}

OutputJson json_of(const LaunchPlan& plan) {
  OutputJson launches = OutputJson::array();
  for (const Launch& launch : plan.launches) {
    OutputJson parameters = OutputJson::array();
    for (const Parameter& parameter : launch.parameters) {
      parameters.push_back(parameter_json(parameter));
    }
    launches.push_back({{"entry", launch.entry},
                        {"entry_symbol", launch.entry_symbol},
                        {"grid", dim_json(launch.grid)},
                        {"block", dim_json(launch.block)},
                        {"shared_bytes", launch.shared_bytes},
                        {"parameters", parameters}});
  }
  return launches;
}

OutputJson json_of(const v1::Generation& generation) {
  return {{"store_id", hex(generation.store_id())}, {"number", generation.number()}};
}

OutputJson json_of(const v1::Provenance& provenance) {
  OutputJson json{{"evidence", evidence_name(provenance.evidence())},
                  {"provisional", provenance.provisional()},
                  {"generation", json_of(provenance.generation())}};
  if (provenance.samples() == 0) {
    return json;  // nothing was measured
  }
  json["measured_problem"] = json_of(problem_from_wire(provenance.measured_problem(), "measured_problem"));
  json["measured_device"] = provenance.measured_device();
  json["measured_device_class"] = hex(provenance.measured_device_class());
  const Timing timing = timing_from_wire(provenance);
  json["measured_at"] = timing.measured_at;
  json["driver"] = provenance.driver().version();
  json["driver_cuda"] = provenance.driver().cuda();
  json["toolchain"] = provenance.toolchain();
  json["timer"] = timing.timer;
  json["tick_us"] = timing.tick_us;
  add_fields(json, timing, kTimingFields);
  json["gain_over_default_ratio"] = timing.gain_over_default;
  json["same_bytes_measured"] = provenance.same_bytes_measured();
  json["verification"] = verification_json(verification_from_wire(provenance.verification(), "verification"));
  return json;
}

OutputJson json_of(const v1::ArtifactInfo& artifact) {
  OutputJson entries = OutputJson::array();
  for (const EntryResources& entry : resources_from_wire(artifact.entries())) {
    entries.push_back(to_json(entry));
  }
  return {{"digest", hex(artifact.digest())},        {"key", hex(artifact.key())},
          {"architecture", artifact.architecture()}, {"toolchain", artifact.toolchain()},
          {"size_bytes", artifact.cubin_bytes()},    {"entries", entries}};
}

OutputJson json_of(const Answer& answer) {
  const v1::GetVariantReply& reply = answer.reply();
  OutputJson json{{"kernel", answer.kernel()},
                  {"problem", json_of(answer.problem())},
                  {"device", reply.device()},
                  {"device_class", hex(reply.device_class())},
                  {"configuration", json_of(answer.configuration())},
                  {"match", to_string(answer.match())},
                  {"departures", departures_of(answer.match())},
                  {"provenance", json_of(reply.provenance())},
                  {"launches", json_of(answer.plan())},
                  {"artifact", json_of(reply.artifact())},
                  {"rule", rule_json(reply.rule())}};
  if (!reply.job_id().empty()) {
    json["job"] = {{"id", reply.job_id()}, {"state", reply.job_state()}};
  }
  if (!reply.why().empty()) {
    json["why"] = reply.why();
  }
  return json;
}

std::string outcome_name(v1::Outcome outcome) {
  std::string name = v1::Outcome_Name(outcome);
  std::ranges::transform(name, name.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; });
  return name.empty() ? std::to_string(outcome) : name;
}

OutputJson json_of(const v1::Job& job) {
  OutputJson json{{"id", job.id()},
                  {"kind", job.kind() == v1::Job::COMPILE_WINNER ? "compile_winner" : "tune"},
                  {"kernel", job.kernel()},
                  {"problem", json_of(problem_from_wire(job.problem(), "job.problem"))},
                  {"device", job.device()},
                  {"device_class", hex(job.device_class())},
                  {"policy", to_string(policy_from_wire(job.policy()))},
                  {"numerics", to_string(numerics_from_wire(job.numerics()))},
                  {"namespace", job.namespace_()},
                  {"state", state_name(job.state())},
                  {"phase", job.phase()},
                  {"configurations", job.configurations()},
                  {"configurations_done", job.configurations_done()},
                  {"nvrtc_calls", job.nvrtc_calls()},
                  {"waiters", job.waiters()},
                  {"created_at", job.created_at()},
                  {"elapsed_ms", job.elapsed_ms()}};
  if (!job.finished_at().empty()) {
    json["finished_at"] = job.finished_at();
  }
  if (!job.error().empty()) {
    json["error"] = job.error();
  }
  if (!job.note().empty()) {
    json["note"] = job.note();
  }
  if (job.max_trials() > 0) {
    json["max_trials"] = job.max_trials();
  }
  if (job.max_seconds() > 0) {
    json["max_seconds"] = job.max_seconds();
  }
  if (!job.stages().empty()) {
    OutputJson& stages = json["stages_ms"] = OutputJson::object();
    for (const v1::StageTime& stage : job.stages()) {
      stages[stage.stage()] = stage.ms();
    }
  }
  if (!job.outcomes().empty()) {
    json["outcomes"] = json_of(job.outcomes());
  }
  return json;
}

OutputJson json_of(const google::protobuf::RepeatedPtrField<v1::OutcomeCount>& counts) {
  OutputJson json = OutputJson::object();
  for (const v1::OutcomeCount& one : counts) {
    json[outcome_name(one.outcome())] = one.count();
  }
  return json;
}

double change_percent(const v1::TuneEvent& event) {
  return 100 * (event.provenance().median_us() / event.before().provenance().median_us() - 1);
}

bool winner_changed(const v1::TuneEvent& event) {
  return configuration_from_wire(event.winner(), "winner") !=
         configuration_from_wire(event.before().winner(), "before.winner");
}

OutputJson json_of(const v1::TuneEvent& event) {
  OutputJson json = json_of(event.job());
  json["already_fresh"] = event.already_fresh();
  if (event.best_us() > 0) {
    json["best_us"] = event.best_us();
  }
  json["outcomes"] = json_of(event.outcomes());
  if (event.has_winner()) {
    json["winner"] = json_of(configuration_from_wire(event.winner(), "winner"));
    json["provenance"] = json_of(event.provenance());
  }
  if (event.has_before()) {
    const v1::RecordBefore& before = event.before();
    json["before"] = {{"winner", json_of(configuration_from_wire(before.winner(), "before.winner"))},
                      {"provenance", json_of(before.provenance())}};
    if (event.has_winner()) {
      json["change_percent"] = change_percent(event);
      json["winner_changed"] = winner_changed(event);
    }
  }
  return json;
}

namespace {

OutputJson argument_json(const v1::Argument& argument) {
  const bool buffer = argument.source() == v1::Parameter::BUFFER;
  OutputJson json{
      {"name", argument.name()}, {"kind", buffer ? "buffer" : "scalar"}, {"type", argument.type()}};
  if (!buffer) {
    json["from"] = argument.source() == v1::Parameter::CALLER ? "caller" : "problem";
    return json;
  }
  json["role"] = lower_case(v1::Role_Name(argument.role()));
  json["extent"] = argument.extent();
  if (argument.shape_size() > 0) {
    json["shape"] = strings(argument.shape());
  }
  json["align_bytes"] = argument.align_bytes();
  return json;
}

}  // namespace

OutputJson json_of(const v1::Kernel& kernel) {
  OutputJson json{{"name", kernel.name()},
                  {"file", kernel.file()},
                  {"dims", strings(kernel.dims())},
                  {"types", strings(kernel.types())},
                  {"tunables", strings(kernel.tunables())},
                  {"records", kernel.records()},
                  {"interface_digest", hex(kernel.interface_digest())},
                  {"flags", OutputJson::object()},
                  {"arguments", OutputJson::array()}};
  for (const v1::NamedValue& flag : kernel.flags()) {
    json["flags"][flag.name()] = flag.value();
  }
  for (const v1::Argument& argument : kernel.arguments()) {
    json["arguments"].push_back(argument_json(argument));
  }
  if (!kernel.error().empty()) {
    json["error"] = kernel.error();
    json["keeps_last_good"] = kernel.keeps_last_good();
  }
  return json;
}

OutputJson json_of(const v1::CheckKernelReply& reply) {
  OutputJson problems = OutputJson::array();
  for (const v1::CheckKernelReply::ProblemReport& report : reply.problems()) {
    OutputJson thinning = OutputJson::array();
    for (const v1::CheckKernelReply::Thinning& step : report.thinning()) {
      thinning.push_back({{"place", step.place()},
                          {"condition", step.condition()},
                          {"rejected", step.rejected()},
                          {"left", step.left()}});
    }
    OutputJson problem = {
        {"problem", json_of(problem_from_wire(report.problem(), "problem"))},
        {"valid_configurations", report.valid()},
        {"configurations", report.total()},
        {"default", json_of(configuration_from_wire(report.first_default(), "first_default"))},
        {"thinning", thinning}};
    if (!report.error().empty()) {
      problem["error"] = report.error();
    }
    problems.push_back(std::move(problem));
  }
  OutputJson compiled = OutputJson::array();
  for (const v1::ArtifactInfo& artifact : reply.compiled()) {
    compiled.push_back(json_of(artifact));
  }
  return {{"kernel", reply.kernel()},
          {"problems", problems},
          {"compiled", compiled},
          {"warnings", strings(reply.warnings())}};
}

OutputJson json_of(const v1::CheckKernelReply::CompiledConfiguration& compiled) {
  OutputJson json{
      {"configuration", json_of(configuration_from_wire(compiled.configuration(), "configuration"))}};
  if (compiled.error().empty()) {
    json["artifact"] = json_of(compiled.artifact());
  } else {
    json["error"] = compiled.error();
  }
  return json;
}

OutputJson json_of(const v1::DeviceClass& device) {
  const v1::DeviceFacts& facts = device.facts();
  OutputJson json{
      {"label", device.label()},
      {"digest", hex(device.digest())},
      {"name", facts.name()},
      {"pci_device_id", facts.pci_device_id()},
      {"compute_capability", std::to_string(facts.cc_major()) + "." + std::to_string(facts.cc_minor())},
      {"sm_count", facts.sm_count()},
      {"l2_bytes", facts.l2_bytes()},
      {"shared_optin_bytes", facts.shared_optin_bytes()},
      {"memory_bytes", facts.memory_bytes()},
      {"memory_bus_bits", facts.memory_bus_bits()},
      {"mig_profile", facts.mig_profile()},
      {"power_limit_mw", facts.power_limit_mw()},
      {"max_sm_mhz", facts.max_sm_mhz()},
      {"replayed", !facts.replay_table().empty()},
      {"records", device.records()},
      {"offered", device.offered()}};
  if (device.offered()) {
    json["agent"] = device.agent();
    json["consent"] = device.consent();
    json["state"] = device.state();
    json["driver"] = device.driver().version();
    json["driver_cuda"] = device.driver().cuda();
  }
  return json;
}

OutputJson json_of(const v1::GetStatusReply& status) {
  OutputJson devices = OutputJson::array();
  for (const v1::DeviceClass& device : status.devices()) {
    devices.push_back(json_of(device));
  }
  return {{"version", status.version()},
          {"generation", json_of(status.generation())},
          {"uptime_ms", status.uptime_ms()},
          {"kernels", status.kernels()},
          {"records", status.records()},
          {"artifacts", status.artifacts()},
          {"jobs_queued", status.jobs_queued()},
          {"jobs_running", status.jobs_running()},
          {"agents", status.agents()},
          {"agent_expected", status.agent_expected()},
          {"toolchains", strings(status.toolchains())},
          {"store_path", status.store_path()},
          {"store_bytes", status.store_bytes()},
          {"read_only", status.read_only()},
          {"read_only_reason", status.read_only_reason()},
          {"damaged_rows", status.damaged_rows()},
          {"hits", status.hits()},
          {"misses", status.misses()},
          {"misses_wanted", status.misses_wanted()},
          {"kernel_errors", strings(status.kernel_errors())},
          {"no_device_because", strings(status.no_device_because())},
          {"devices", devices}};
}

void print_json(const OutputJson& document) {
  std::cout << document.dump(2, ' ', false, OutputJson::error_handler_t::replace) << std::endl;
}

}  // namespace cubind::ctl
