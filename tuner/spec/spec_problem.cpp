#include <algorithm>
#include <string>

#include "base/json.hpp"
#include "base/names_of.hpp"
#include "base/text.hpp"
#include "schemas/limits.hpp"
#include "tuner/spec/spec_sections.hpp"

namespace cubind {
namespace {

DimSpec read_dim(const JsonNode& node) {
  DimSpec dim;
  dim.name = read_name(node);
  if (node.is_string()) {
    dim.description = node.as_string();
    return dim;
  }
  if (!node.is_object()) {
    node.fail("expected a description or {\"description\": ..., \"min\": 0}");
  }
  node.expect_keys({"description", "min"});
  dim.description = node.string_or("description", "");
  if (const auto minimum = node.find("min")) {
    dim.minimum = minimum->as_int64(0, 1);
  }
  return dim;
}

TypeSpec read_type(const JsonNode& node) {
  TypeSpec type;
  type.name = read_name(node);
  if (parse_scalar_type(type.name)) {
    node.fail(quoted(type.name) + " is the name of a type: choose another name, as in T");
  }
  for (const JsonNode& element : elements_of(node, SpecLimits::kTypeChoices, "types")) {
    const std::string text = element.as_string();
    const auto choice = parse_dtype(text);
    if (!choice) {
      element.fail(quoted(text) + " is not a type" + dtype_suggestion(text));
    }
    if (std::ranges::find(type.choices, *choice) != type.choices.end()) {
      element.fail(std::string(to_string(*choice)) + " is listed twice");
    }
    type.choices.push_back(*choice);
  }
  return type;
}

NamedValue read_flag(const JsonNode& node) {
  const std::string name = read_name(node);
  if (node.is_boolean()) {
    return {name, node.as_bool() ? 1 : 0};
  }
  if (!node.is_integer()) {
    node.fail("expected the flag's default, an integer or a boolean, found " + node.type_name());
  }
  return {name, node.as_int64()};
}

std::vector<std::int64_t> read_edges(const JsonNode& node) {
  std::vector<std::int64_t> edges;
  for (const JsonNode& element : elements_of(node, SpecLimits::kEdges, "edges")) {
    const std::int64_t edge = element.as_int64(1, kMaxDim);
    if (!edges.empty() && edge <= edges.back()) {
      element.fail("edges ascend: " + std::to_string(edge) + " follows " + std::to_string(edges.back()));
    }
    if (!edges.empty() && edge > 4 * edges.back()) {
      element.fail(std::to_string(edge) + " is more than 4 times the edge before it, " +
                   std::to_string(edges.back()) + ": one answer would stand for too wide a range");
    }
    edges.push_back(edge);
  }
  return edges;
}

BucketRule read_bucket(const JsonNode& node) {
  BucketRule rule;
  if (node.is_object()) {
    node.expect_keys({"edges"});
    rule.kind = BucketRule::Kind::Edges;
    rule.edges = read_edges(node.at("edges"));
    return rule;
  }
  if (!node.is_string()) {
    node.fail("expected \"exact\", \"pow2\" or {\"edges\": [...]}, found " + node.type_name());
  }
  rule.kind = node.as_choice({"exact", "pow2"}) == 0 ? BucketRule::Kind::Exact : BucketRule::Kind::Pow2;
  return rule;
}

DimSpec& find_dim(KernelSpec& spec, const JsonNode& node, const std::string& name) {
  const auto found = std::ranges::find(spec.dims, name, &DimSpec::name);
  if (found == spec.dims.end()) {
    node.fail(quoted(name) + " is not a dim" + suggestion(name, names_of(spec.dims)));
  }
  return *found;
}

void check_distinct(const JsonNode& node, const KernelSpec& spec) {
  const bool dim = std::ranges::find(spec.dims, node.key(), &DimSpec::name) != spec.dims.end();
  const bool type = std::ranges::find(spec.types, node.key(), &TypeSpec::name) != spec.types.end();
  if (dim || type) {
    node.fail(quoted(node.key()) + " is a " + (dim ? "dim" : "type") + " already");
  }
}

void read_specialize(const JsonNode& node, KernelSpec& spec) {
  for (const JsonNode& element : node.elements()) {
    DimSpec& dim = find_dim(spec, element, element.as_string());
    if (dim.bucket.kind != BucketRule::Kind::Exact) {
      element.fail(quoted(dim.name) + " has a bucket (/problem/bucket/" + dim.name +
                   "): a bucketed dim cannot be compiled in");
    }
    if (dim.specialized) {
      element.fail(quoted(dim.name) + " is listed twice");
    }
    dim.specialized = true;
  }
}

}  // namespace

void read_problem(const JsonNode& root, KernelSpec& spec) {
  const JsonNode problem = root.at("problem");
  refuse_scenarios(problem);
  problem.expect_keys({"dims", "types", "flags", "bucket"});
  for (const JsonNode& node : members_of(problem.at("dims"), SpecLimits::kDims, "dims")) {
    spec.dims.push_back(read_dim(node));
  }
  if (const auto types = problem.find("types")) {
    for (const JsonNode& node : members_of(*types, SpecLimits::kTypes, "types")) {
      check_distinct(node, spec);
      spec.types.push_back(read_type(node));
    }
  }
  if (const auto flags = problem.find("flags")) {
    for (const JsonNode& node : members_of(*flags, SpecLimits::kFlags, "flags")) {
      check_distinct(node, spec);
      spec.flags.push_back(read_flag(node));
    }
  }
  if (const auto buckets = problem.find("bucket")) {
    for (const JsonNode& node : buckets->members()) {
      find_dim(spec, node, node.key()).bucket = read_bucket(node);
    }
  }
  if (const auto specialize = root.find("specialize")) {
    read_specialize(*specialize, spec);
  }
}

}  // namespace cubind
