#include "python/extension/rule_json.hpp"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "base/error.hpp"

namespace cubind::python {
namespace {

using Json = nlohmann::json;

constexpr const char* kSources[] = {"buffer", "value", "caller", "symbol"};
constexpr const char* kRoles[] = {"none", "in", "out", "inout", "zero", "scratch"};

template <typename Enum, std::size_t Count>
Enum enum_of(const Json& json, const char* const (&names)[Count]) {
  const auto found = std::ranges::find(names, json.get<std::string_view>());
  if (found == std::end(names)) {
    throw Error(ErrorCode::InvalidArgument, "rule", json.dump() + " is not known");
  }
  return static_cast<Enum>(found - std::begin(names));
}

DType dtype_of(const Json& json) {
  const auto type = parse_scalar_type(json.get<std::string>());
  if (!type) {
    throw Error(ErrorCode::InvalidArgument, "rule", json.dump() + " is not a type");
  }
  return *type;
}

std::vector<NamedValue> pairs_of(const Json& json) {
  std::vector<NamedValue> values;
  for (const Json& pair : json) {
    values.push_back({pair.at(0), pair.at(1)});
  }
  return values;
}

Problem problem_of(const Json& json) {
  Problem problem{pairs_of(json.at("dims")), {}, pairs_of(json.at("flags")), json.at("scenario")};
  for (const Json& pair : json.at("types")) {
    problem.types.push_back({pair.at(0), dtype_of(pair.at(1))});
  }
  return problem;
}

/// Zero: there is none.
Digest digest_of(const Json& json) {
  return Digest::from_hex(json.get<std::string_view>()).value_or(Digest{});
}

std::string bytes_from_hex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

LaunchTemplate launch_of(const Json& json) {
  LaunchTemplate launch;
  launch.entry = json.at("entry");
  launch.entry_symbol = json.at("entry_symbol");
  launch.grid = json.at("grid");
  launch.block = json.at("block");
  launch.shared_bytes = json.at("shared_bytes");
  for (const Json& from : json.at("parameters")) {
    launch.parameters.push_back({from.at("name"), enum_of<ParameterSource>(from.at("source"), kSources),
                                 dtype_of(from.at("type")), enum_of<Role>(from.at("role"), kRoles),
                                 from.at("extent"), from.at("align_bytes"), from.at("value"),
                                 from.at("shape"), from.value("variable", ""), from.value("symbol", "")});
  }
  return launch;
}

DeviceConstants constants_of(const Json& json) {
  DeviceConstants constants;
  const std::pair<const char*, std::int64_t*> members[] = {{"device.sm_count", &constants.sm_count},
                                                           {"device.shared_optin", &constants.shared_optin},
                                                           {"device.l2_bytes", &constants.l2_bytes},
                                                           {"device.cc", &constants.cc}};
  const std::vector<NamedValue> given = pairs_of(json);
  for (const auto& [name, member] : members) {
    const auto found = std::ranges::find(given, name, &NamedValue::name);
    if (found == given.end()) {
      throw Error(ErrorCode::InvalidArgument, "rule.device_constants", std::string(name) + " is missing");
    }
    *member = found->value;
  }
  return constants;
}

RuleParts parts_of(const Json& json) {
  RuleParts parts;
  parts.kernel = json.at("kernel");
  parts.asked = problem_of(json.at("asked"));
  parts.configuration.values = pairs_of(json.at("configuration"));
  for (const Json& interval : json.at("intervals")) {
    parts.intervals.push_back({interval.at(0), interval.at(1), interval.at(2)});
  }
  std::ranges::transform(json.at("own_records"), std::back_inserter(parts.own_records), problem_of);
  parts.plan.constraints = json.at("constraints");
  parts.conditions = json.at("conditions");
  std::ranges::transform(json.at("launches"), std::back_inserter(parts.plan.launches), launch_of);
  parts.plan.static_shared_bytes = json.at("static_shared_bytes");
  parts.device = constants_of(json.at("device_constants"));
  return parts;
}

Json parameter_json(const Parameter& parameter) {
  Json json{{"name", parameter.name},
            {"source", name_of(parameter.source)},
            {"type", to_string(parameter.type)},
            {"role", name_of(parameter.role)},
            {"extent_bytes", parameter.extent_bytes},
            {"align_bytes", parameter.align_bytes},
            {"value", parameter.value},
            {"shape", parameter.shape}};
  if (parameter.source == ParameterSource::Symbol) {
    json["variable"] = parameter.variable;
    json["symbol"] = parameter.symbol;
  }
  return json;
}

}  // namespace

const char* name_of(ParameterSource source) { return kSources[static_cast<std::size_t>(source)]; }
const char* name_of(Role role) { return kRoles[static_cast<std::size_t>(role)]; }

RuleParts rule_from_json(std::string_view text) {
  try {
    return parts_of(Json::parse(text));
  } catch (const Json::exception& fault) {
    throw Error(ErrorCode::InvalidArgument, "rule", fault.what());
  }
}

ClaimedAnswer claims_from_json(std::string_view text) {
  try {
    const Json json = Json::parse(text);
    ClaimedAnswer answer;
    answer.name_space = json.at("namespace");
    answer.warm_l2 = json.at("warm_l2");
    answer.graph_launch = json.at("graph_launch");
    answer.numerics = json.at("numerics");
    answer.fingerprint = json.at("fingerprint");
    answer.signature = bytes_from_hex(json.at("signature"));
    answer.match = json.at("match");
    answer.measured_problem = problem_of(json.at("measured_problem"));
    answer.device_class = digest_of(json.at("device_class"));
    answer.measured_device_class = digest_of(json.at("measured_device_class"));
    answer.artifact = digest_of(json.at("artifact"));
    answer.toolchain = json.at("toolchain");
    answer.architecture = json.at("architecture");
    answer.cubin = digest_of(json.at("cubin"));
    answer.cubin_bytes = json.at("cubin_bytes");
    answer.evidence = json.at("evidence");
    answer.provisional = json.at("provisional");
    return answer;
  } catch (const Json::exception& fault) {
    throw Error(ErrorCode::InvalidArgument, "answer", fault.what());
  }
}

std::string to_json(const LaunchPlan& plan) {
  Json json = Json::array();
  for (const Launch& launch : plan.launches) {
    Json parameters = Json::array();
    std::ranges::transform(launch.parameters, std::back_inserter(parameters), parameter_json);
    json.push_back({{"entry", launch.entry},
                    {"entry_symbol", launch.entry_symbol},
                    {"grid", {launch.grid.x, launch.grid.y, launch.grid.z}},
                    {"block", {launch.block.x, launch.block.y, launch.block.z}},
                    {"shared_bytes", launch.shared_bytes},
                    {"parameters", std::move(parameters)}});
  }
  return json.dump();
}

}  // namespace cubind::python
