#include "client/cubindctl/answers/answer_json.hpp"

#include <nlohmann/json.hpp>

#include "base/hex.hpp"
#include "client/cubindctl/answers/comparison_output.hpp"
#include "plan/facts/fact_json.hpp"
#include "tuner/spec/wire.hpp"

namespace cubind::ctl {
namespace {

OutputJson dim_json(const Dim3& dim) { return {dim.x, dim.y, dim.z}; }

OutputJson tensor_map_json(const TensorMap& map) {
  const auto list = [](const TensorMap::Axes& axes, std::size_t count) {
    return std::vector(axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(count));
  };
  return {{"argument", map.argument},
          {"type", to_string(map.type)},
          {"sizes", list(map.sizes, map.axes)},
          {"strides", list(map.strides, map.axes - 1)},
          {"box", list(map.box, map.axes)},
          {"element_strides", list(map.element_strides, map.axes)},
          {"swizzle", map.swizzle},
          {"interleave", map.interleave},
          {"l2_promotion", map.l2_promotion},
          {"fill", map.nan_fill ? "nan" : "zeros"}};
}

OutputJson parameter_json(const Parameter& parameter) {
  const bool is_symbol = parameter.source == ParameterSource::Symbol;
  const bool is_map = parameter.source == ParameterSource::TensorMap;
  OutputJson json{{"name", parameter.name},
                  {"kind", is_symbol                     ? "symbol"
                           : is_map                      ? "tensor_map"
                           : is_buffer(parameter.source) ? "buffer"
                                                         : "scalar"},
                  {"type", to_string(parameter.type)}};
  if (is_symbol) {
    json["variable"] = parameter.variable;
    json["symbol"] = parameter.symbol;
  }
  if (is_map) {
    json["tensor_map"] = tensor_map_json(parameter.tensor_map);
  }
  if (is_buffer(parameter.source)) {
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
  OutputJson json{{"verified", verification.verified()},
                  {"reference", verification.reference()},
                  {"worst_excess_ratio", verification.worst_excess()}};
  add_fields(json, verification, VerificationSummary::kSameBitsFieldNumber,
             VerificationSummary::kAfterTimingFieldNumber);
  OutputJson& problems = json["problems"] = OutputJson::array();
  for (const v1::Problem& problem : verification.problems()) {
    problems.push_back(json_of(problem_from_wire(problem, "problem")));
  }
  return json;
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
  return {{"intervals", intervals},
          {"own_records", own},
          {"constraints", rule.constraints()},
          {"conditions", rule.conditions()}};
}

OutputJson departures_of(const Match& match) {
  OutputJson names = OutputJson::array();
  for (const Departure departure : match.departures()) {
    names.push_back(to_string(departure));
  }
  return names;
}

}  // namespace

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
    if (launch.cluster) {
      launches.back()["cluster"] = dim_json(*launch.cluster);
    }
    if (launch.attributes != LaunchAttributes{}) {
      const auto& [cooperative, overlaps, priority] = launch.attributes;
      launches.back()["attributes"] = {{"cooperative", cooperative},
                                       {"programmatic_stream_serialization", overlaps},
                                       {"priority", priority}};
    }
  }
  return launches;
}

OutputJson json_of(const v1::Provenance& provenance) {
  OutputJson json{{"evidence", evidence_name(provenance.evidence())},
                  {"provisional", provenance.provisional()},
                  {"generation", json_of(provenance.generation())}};
  if (provenance.timing().samples() == 0) {
    return json;  // nothing was measured
  }
  json["measured_problem"] = json_of(problem_from_wire(provenance.measured_problem(), "measured_problem"));
  json["measured_device"] = provenance.measured_device();
  json["measured_device_class"] = hex(provenance.measured_device_class());
  const Timing& timing = provenance.timing();
  json["measured_at"] = timing.measured_at();
  json["driver"] = provenance.driver().version();
  json["driver_cuda"] = provenance.driver().cuda();
  json["toolchain"] = provenance.toolchain();
  add_fields(json, timing, Timing::kTimerFieldNumber, Timing::kTickUsFieldNumber);
  add_fields(json, timing, 1, Timing::kContendedFieldNumber);
  json["gain_over_default_ratio"] = over_default(timing).value_or(0);
  add_fields(json, timing, Timing::kMeasuredAtFieldNumber + 1);
  if (provenance.over_library_size() > 0) {
    json["over_library"] =
        json_of(std::vector(provenance.over_library().begin(), provenance.over_library().end()));
  }
  json["same_bytes_measured"] = provenance.same_bytes_measured();
  json["verification"] = verification_json(provenance.verification());
  return json;
}

OutputJson json_of(const v1::ArtifactInfo& artifact) {
  OutputJson entries = OutputJson::array();
  for (const EntryResources& entry : artifact.entries()) {
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

}  // namespace cubind::ctl
