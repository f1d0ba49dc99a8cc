#include <algorithm>
#include <string>

#include "base/json.hpp"
#include "base/names_of.hpp"
#include "base/text.hpp"
#include "tuner/spec/spec_sections.hpp"

namespace cubind {
namespace {

// true and false are 1 and 0.
std::int64_t read_value(const JsonNode& node) {
  return node.is_boolean() ? (node.as_bool() ? 1 : 0) : node.as_int64();
}

Tunable read_tunable(const JsonNode& node) {
  Tunable tunable;
  tunable.name = read_name(node);
  for (const JsonNode& element : elements_of(node, SpecLimits::kTunableValues, "values")) {
    if (element.is_string()) {
      element.fail(
          "a tunable's values are integers: number the choices, and let the source choose by the number, as "
          "in "
          "std::conditional_t or if constexpr (" +
          tunable.name + " == 1)");
    }
    const std::int64_t value = read_value(element);
    if (std::ranges::find(tunable.values, value) != tunable.values.end()) {
      element.fail(std::to_string(value) + " is listed twice");
    }
    tunable.values.push_back(value);
  }
  return tunable;
}

void check_distinct_tunables(const JsonNode& node, const KernelSpec& spec) {
  const auto taken = [&](const auto& items) {
    return std::ranges::any_of(items, [&](const auto& item) { return item.name == node.key(); });
  };
  if (taken(spec.dims)) {
    node.fail(quoted(node.key()) + " is a dim already");
  }
  if (taken(spec.types)) {
    node.fail(quoted(node.key()) + " is a type already");
  }
  if (taken(spec.flags)) {
    node.fail(quoted(node.key()) + " is a flag already");
  }
}

Configuration read_default(const JsonNode& node, const KernelSpec& spec) {
  for (const JsonNode& member : node.members()) {
    const auto names = names_of(spec.tunables);
    if (std::ranges::find(names, member.key()) == names.end()) {
      member.fail(quoted(member.key()) + " is not a tunable" + suggestion(member.key(), names));
    }
  }
  Configuration configuration;
  for (const Tunable& tunable : spec.tunables) {
    const auto member = node.find(tunable.name);
    if (!member) {
      node.fail("the tunable " + quoted(tunable.name) + " is missing");
    }
    const std::int64_t value = read_value(*member);
    if (std::ranges::find(tunable.values, value) == tunable.values.end()) {
      member->fail(std::to_string(value) + " is not listed in /tunables/" + tunable.name + " (" +
                   join(tunable.values, ", ") + ")");
    }
    configuration.values.push_back({tunable.name, value});
  }
  return configuration;
}

void add_problem_symbols(const KernelSpec& spec, SymbolTable& symbols) {
  for (const DimSpec& dim : spec.dims) {
    symbols.add(dim.name);
  }
  for (const NamedValue& flag : spec.flags) {
    symbols.add(flag.name);
  }
  for (const TypeSpec& type : spec.types) {
    symbols.add_sizeof(type.name);
  }
}

}  // namespace

void read_tunables(const JsonNode& root, KernelSpec& spec) {
  const JsonNode tunables = root.at("tunables");
  std::uint64_t space = 1;
  for (const JsonNode& node : members_of(tunables, SpecLimits::kTunables, "tunables")) {
    check_distinct_tunables(node, spec);
    spec.tunables.push_back(read_tunable(node));
    const bool overflows = __builtin_mul_overflow(space, spec.tunables.back().values.size(), &space);
    if (overflows || space > std::uint64_t{1} << SpecLimits::kSpaceBits) {
      tunables.fail("the space has more than 2^" + std::to_string(SpecLimits::kSpaceBits) +
                    " configurations before constraints");
    }
  }
}

SpecScopes make_scopes(const KernelSpec& spec) {
  SpecScopes scopes;
  add_problem_symbols(spec, scopes.problem);
  scopes.reference = scopes.problem;
  for (const auto& constant : kDeviceConstants) {
    scopes.reference.add(constant.first);
  }
  // First what a constraint or a grid is most likely to mean: a message lists the first names.
  for (const Tunable& tunable : spec.tunables) {
    scopes.launch.add(tunable.name);
  }
  for (const std::string& name : scopes.reference.names()) {
    scopes.launch.add(name);
  }
  return scopes;
}

void read_constraints(const JsonNode& root, const SpecScopes& scopes, KernelSpec& spec) {
  const auto constraints = root.find("constraints");
  if (!constraints) {
    return;
  }
  for (const JsonNode& node : elements_of(*constraints, SpecLimits::kConstraints, "constraints", 0)) {
    spec.constraints.push_back(read_expression(node, scopes.launch));
  }
}

void read_defaults(const JsonNode& root, KernelSpec& spec) {
  const JsonNode defaults = root.at("default");
  if (!defaults.is_array()) {
    defaults.fail("expected a list of configurations, tried in order, found " + defaults.type_name());
  }
  for (const JsonNode& node : elements_of(defaults, SpecLimits::kDefaults, "configurations")) {
    spec.defaults.push_back(read_default(node, spec));
  }
}

}  // namespace cubind
