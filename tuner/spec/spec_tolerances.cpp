#include <algorithm>
#include <string>

#include "base/json.hpp"
#include "base/text.hpp"
#include "tuner/spec/spec_sections.hpp"

namespace cubind {
namespace {

double read_factor(const JsonNode& node) {
  const double factor = node.as_number();
  if (factor < 0) {
    node.fail("a tolerance is not negative");
  }
  return factor;
}

BoundSpec read_bound(const JsonNode& node, const SpecScopes& scopes) {
  if (node.is_number()) {
    return {BoundSpec::Kind::Number, read_factor(node), ""};
  }
  if (!node.is_object() || node.contains("times") == node.contains("sqrt")) {
    node.fail(
        "expected a number, {\"factor\": 1e-6, \"times\": \"N\"} or {\"factor\": 1e-6, \"sqrt\": \"N\"}");
  }
  node.expect_keys({"factor", "times", "sqrt"});
  const double factor = read_factor(node.at("factor"));
  if (const auto times = node.find("times")) {
    return {BoundSpec::Kind::Times, factor, read_expression(*times, scopes.problem)};
  }
  return {BoundSpec::Kind::SquareRoot, factor, read_expression(node.at("sqrt"), scopes.problem)};
}

void read_type_tolerance(const JsonNode& node, const std::string& output, const SpecScopes& scopes,
                         KernelSpec& spec) {
  const auto type = parse_dtype(node.key());
  if (!type) {
    node.fail(quoted(node.key()) + " is not a type" + dtype_suggestion(node.key()) +
              ": tolerances are by element type, as in {\"f32\": {\"rtol\": 1e-5, \"atol\": 1e-6}}");
  }
  const Tolerance* known = spec.tolerance(output, *type);
  if (known != nullptr && known->output == output) {
    node.fail(std::string(to_string(*type)) + " has a tolerance already");
  }
  node.expect_keys({"rtol", "atol"});
  spec.tolerances.push_back(
      {*type, read_bound(node.at("rtol"), scopes), read_bound(node.at("atol"), scopes), output});
}

std::vector<std::string> output_names(const KernelSpec& spec) {
  std::vector<std::string> names;
  for (const ArgumentSpec& argument : spec.arguments) {
    if (is_output(argument)) {
      names.push_back(argument.name);
    }
  }
  return names;
}

std::vector<DType> types_of(const ArgumentSpec& argument, const KernelSpec& spec) {
  const auto named = std::ranges::find(spec.types, argument.type, &TypeSpec::name);
  return named == spec.types.end() ? std::vector<DType>{parse_dtype(argument.type).value()} : named->choices;
}

void read_output_tolerances(const JsonNode& node, const SpecScopes& scopes, KernelSpec& spec) {
  const std::vector<std::string> outputs = output_names(spec);
  if (std::ranges::find(outputs, node.key()) == outputs.end()) {
    node.fail(quoted(node.key()) + " is not an output" + suggestion(node.key(), outputs));
  }
  const std::vector<DType> types = types_of(*spec.argument(node.key()), spec);
  for (const JsonNode& member : node.members()) {
    read_type_tolerance(member, node.key(), scopes, spec);
    if (std::ranges::find(types, spec.tolerances.back().type) == types.end()) {
      member.fail(quoted(node.key()) + " is never of this type");
    }
  }
}

// Where the type of an output stands: of a type of the problem, in the list of its choices.
JsonNode node_of(const JsonNode& root, const KernelSpec& spec, const ArgumentSpec& argument, DType type) {
  const auto named = std::ranges::find(spec.types, argument.type, &TypeSpec::name);
  if (named == spec.types.end()) {
    return root.at("arguments").at(argument.name).at("buffer");
  }
  const auto choice = std::ranges::find(named->choices, type) - named->choices.begin();
  return root.at("problem").at("types").at(named->name).at(static_cast<std::size_t>(choice));
}

}  // namespace

void read_tolerance(const JsonNode& root, const SpecScopes& scopes, KernelSpec& spec) {
  for (const JsonNode& node : root.at("tolerance").members()) {
    if (node.key() != "outputs") {
      read_type_tolerance(node, "", scopes, spec);
      continue;
    }
    for (const JsonNode& output : node.members()) {
      read_output_tolerances(output, scopes, spec);
    }
  }
}

void check_tolerances(const JsonNode& root, const KernelSpec& spec) {
  for (const ArgumentSpec& argument : spec.arguments) {
    if (!is_output(argument)) {
      continue;
    }
    for (const DType type : types_of(argument, spec)) {
      if (spec.tolerance(argument.name, type) == nullptr) {
        std::string text(to_string(type));
        const std::string example = quoted(text);
        text.append(" has no tolerance in /tolerance, as in ").append(example);
        text.append(is_floating(type) ? ": {\"rtol\": 1e-3, \"atol\": 1e-5}"
                                      : ": {\"rtol\": 0, \"atol\": 0}");
        node_of(root, spec, argument, type).fail(std::move(text));
      }
    }
  }
}

}  // namespace cubind
