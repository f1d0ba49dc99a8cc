#include "client/cubindctl/reply_json.hpp"

#include <nlohmann/json.hpp>

#include "base/hex.hpp"
#include "client/cubindctl/answers/answer_json.hpp"
#include "plan/facts/fact_json.hpp"
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
  OutputJson json = OutputJson::object();
  add_fields(json, job, 1, v1::Job::kKernelFieldNumber);
  json["problem"] = json_of(problem_from_wire(job.problem(), "job.problem"));
  add_fields(json, job, v1::Job::kDeviceFieldNumber, v1::Job::kDeviceClassFieldNumber);
  json["policy"] = to_string(policy_from_wire(job.policy()));
  json["numerics"] = to_string(numerics_from_wire(job.numerics()));
  add_fields(json, job, v1::Job::kNamespaceFieldNumber, v1::Job::kMaxSecondsFieldNumber);
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
  return 100 *
         (event.provenance().timing().median_us() / event.before().provenance().timing().median_us() - 1);
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
  OutputJson json = OutputJson::object();
  add_fields(json, kernel, 1, v1::Kernel::kInterfaceDigestFieldNumber);
  json["flags"] = OutputJson::object();
  json["arguments"] = OutputJson::array();
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
      thinning.push_back({{"place", step.where()},
                          {"condition", step.condition()},
                          {"rejected", step.rejected()},
                          {"left", step.left()}});
    }
    OutputJson problem = {
        {"problem", json_of(problem_from_wire(report.problem(), "problem"))},
        {"valid_configurations", report.valid()},
        {"configurations", report.total()},
        {"default", json_of(configuration_from_wire(report.first_default(), "first_default"))},
        {"launches", json_of(plan_from_wire(report.plan(), "plan"))},
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

OutputJson json_of(const v1::DeviceClass& device) {
  OutputJson json{{"label", device.label()}, {"digest", hex(device.digest())}};
  add_device_facts(json, device.facts(), v1::DeviceFacts::kMaxSmMhzFieldNumber);
  json["replayed"] = !device.facts().replay_table().empty();
  json["records"] = device.records();
  json["shipped_records"] = device.shipped_records();
  json["offered"] = device.offered();
  if (device.offered()) {
    json["agent"] = device.agent();
    json["consent"] = device.consent();
    json["state"] = device.state();
    if (device.temperature_c() > 0) {
      json["temperature_c"] = device.temperature_c();
      json["throttled"] = device.throttled();
    }
    json["driver"] = device.driver().version();
    json["driver_cuda"] = device.driver().cuda();
  }
  return json;
}

OutputJson json_of(const v1::GetStatusReply& status) {
  OutputJson json = OutputJson::object();
  add_fields(json, status, 1, v1::GetStatusReply::kSandboxLacksFieldNumber);
  OutputJson& devices = json["devices"] = OutputJson::array();
  for (const v1::DeviceClass& device : status.devices()) {
    devices.push_back(json_of(device));
  }
  json["saved"] = OutputJson::object();
  add_fields(json["saved"], status.saved(), 1, v1::Savings::kTuningMsFieldNumber);
  OutputJson& pinned = json["pinned"] = OutputJson::array();
  for (const v1::PinnedJob& job : status.pinned()) {
    add_fields(pinned.emplace_back(OutputJson::object()), job, 1, v1::PinnedJob::kProcessesFieldNumber);
  }
  return json;
}

}  // namespace cubind::ctl
