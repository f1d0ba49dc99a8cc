#include "plan/problem_json.hpp"

#include <utility>

#include "base/json.hpp"

namespace cubind {

OrderedJson to_json(const std::vector<NamedValue>& values) {
  OrderedJson json = OrderedJson::object();
  for (const NamedValue& value : values) {
    json[value.name] = value.value;
  }
  return json;
}

OrderedJson to_json(const Problem& problem) {
  OrderedJson types = OrderedJson::object();
  for (const TypeBinding& binding : problem.types) {
    types[binding.name] = to_string(binding.type);
  }
  return {{"dims", to_json(problem.dims)},
          {"types", std::move(types)},
          {"flags", to_json(problem.flags)},
          {"scenario", problem.scenario}};
}

}  // namespace cubind
