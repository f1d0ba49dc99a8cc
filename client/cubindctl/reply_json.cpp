#include "client/cubindctl/reply_json.hpp"

#include <nlohmann/json.hpp>

#include "base/hex.hpp"
#include "client/cubindctl/answer_json.hpp"
#include "tuner/spec/wire.hpp"

namespace cubind::ctl {
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
  if (!argument.symbol().empty()) {
    json["symbol"] = argument.symbol();
  }
  return json;
}

}  // namespace

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
                  {"stage", job.stage()},
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
    json["best_screened_us"] = event.best_us();
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
    if (before.has_policy()) {
      const v1::Policy& policy = before.policy();
      json["before"]["policy"] =
          to_string(Policy{policy.warm_l2(), policy.flush_method(), policy.graph_launch()});
    }
    if (event.has_winner()) {
      json["change_percent"] = change_percent(event);
      json["winner_changed"] = winner_changed(event);
    }
  }
  return json;
}

OutputJson json_of(const v1::Kernel& kernel) {
  OutputJson json{{"name", kernel.name()},
                  {"file", kernel.file()},
                  {"dims", strings(kernel.dims())},
                  {"types", strings(kernel.types())},
                  {"tunables", strings(kernel.tunables())},
                  {"records", kernel.records()},
                  {"shipped_records", kernel.shipped_records()},
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
    if (!compiled.constraint().empty()) {
      json["constraint"] = compiled.constraint();
    }
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
      {"shipped_records", device.shipped_records()},
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
          {"shipped_records", status.shipped_records()},
          {"artifacts", status.artifacts()},
          {"jobs_queued", status.jobs_queued()},
          {"jobs_running", status.jobs_running()},
          {"agents", status.agents()},
          {"agent_expected", status.agent_expected()},
          {"toolchains", strings(status.toolchains())},
          {"store_path", status.store_path()},
          {"store_bytes", status.store_bytes()},
          {"cubin_bytes", status.cubin_bytes()},
          {"cubin_limit_bytes", status.cubin_limit_bytes()},
          {"cubins_evicted", status.cubins_evicted()},
          {"store_lag_ms", status.store_lag_ms()},
          {"peers", strings(status.peers())},
          {"read_only", status.read_only()},
          {"read_only_reason", status.read_only_reason()},
          {"damaged_rows", status.damaged_rows()},
          {"hits", status.hits()},
          {"misses", status.misses()},
          {"misses_wanted", status.misses_wanted()},
          {"kernel_errors", strings(status.kernel_errors())},
          {"no_device_because", strings(status.no_device_because())},
          {"sandbox_lacks", strings(status.sandbox_lacks())},
          {"devices", devices}};
}

}  // namespace cubind::ctl
