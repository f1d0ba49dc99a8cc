#include "client/cubindctl/terminal/json_output.hpp"

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/hex.hpp"
#include "plan/answer.hpp"

namespace cubind::ctl {

std::string lower_case(std::string name) {
  std::ranges::transform(name, name.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; });
  return name;
}

std::string state_name(v1::Job::State state) {
  const std::string name = lower_case(v1::Job::State_Name(state));
  return name.empty() ? std::to_string(state) : name;
}

std::string evidence_name(v1::Evidence evidence) {
  const std::string name = lower_case(v1::Evidence_Name(evidence));
  return name.empty() ? std::to_string(evidence) : name;
}

std::string outcome_name(v1::Outcome outcome) {
  const std::string name = lower_case(v1::Outcome_Name(outcome));
  return name.empty() ? std::to_string(outcome) : name;
}

OutputJson strings(const google::protobuf::RepeatedPtrField<std::string>& from) {
  return std::vector<std::string>(from.begin(), from.end());
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

OutputJson json_of(const v1::Generation& generation) {
  return {{"store_id", hex(generation.store_id())}, {"number", generation.number()}};
}

void print_json(const OutputJson& document) {
  std::cout << document.dump(2, ' ', false, OutputJson::error_handler_t::replace) << std::endl;
}

}  // namespace cubind::ctl
