#include <algorithm>
#include <string>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/names_of.hpp"
#include "base/text.hpp"
#include "tuner/includes/nvrtc_options.hpp"
#include "tuner/spec/placeholders.hpp"
#include "tuner/spec/spec_sections.hpp"

namespace cubind {
namespace {

bool is_tunable(const KernelSpec& spec, const std::string& name) {
  return std::ranges::find(spec.tunables, name, &Tunable::name) != spec.tunables.end();
}

std::vector<std::string> compiled_names(const KernelSpec& spec, bool with_tunables) {
  std::vector<std::string> names;
  for (const TypeSpec& type : spec.types) {
    names.push_back(type.name);
  }
  for (const NamedValue& flag : spec.flags) {
    names.push_back(flag.name);
  }
  for (const DimSpec& dim : spec.dims) {
    if (dim.specialized) {
      names.push_back(dim.name);
    }
  }
  for (const Tunable& tunable : spec.tunables) {
    if (with_tunables) {
      names.push_back(tunable.name);
    }
  }
  return names;
}

void check_placeholder(const JsonNode& node, const std::string& name, const KernelSpec& spec,
                       bool with_tunables) {
  const auto known = compiled_names(spec, with_tunables);
  if (std::ranges::find(known, name) != known.end()) {
    return;
  }
  const std::string shown = "{" + name + "}";
  if (std::ranges::find(spec.dims, name, &DimSpec::name) != spec.dims.end()) {
    node.fail(shown + " is a dim that /specialize does not list: it is not compiled in");
  }
  if (is_tunable(spec, name)) {
    node.fail(shown + " is a tunable: the reference must not depend on how the kernel is tuned");
  }
  node.fail(shown + " names nothing that is compiled in" + suggestion(name, known));
}

std::string read_entry(const JsonNode& node, const KernelSpec& spec, bool with_tunables) {
  std::string text = read_compiled_text(node, spec, with_tunables);
  check_name_expression(text, node.where());
  return text;
}

std::vector<std::string> read_launch_arguments(const JsonNode& node, const KernelSpec& spec) {
  const std::vector<std::string> known = names_of(spec.arguments);
  std::vector<std::string> names;
  for (const JsonNode& element : node.elements()) {
    names.push_back(element.as_string());
    if (spec.argument(names.back()) == nullptr) {
      element.fail(quoted(names.back()) + " is not an argument" + suggestion(names.back(), known));
    }
  }
  return names;
}

constexpr std::int64_t kMostUrgent = -5;  // of a launch or stream

LaunchAttributes read_attributes(const JsonNode& launch) {
  LaunchAttributes attributes;
  attributes.cooperative = launch.bool_or("cooperative", false);
  if (const auto node = launch.find("attributes")) {
    node->expect_keys({"programmatic_stream_serialization", "priority"});
    attributes.programmatic_stream_serialization = node->bool_or("programmatic_stream_serialization", false);
    if (const auto priority = node->find("priority")) {
      attributes.priority = static_cast<std::int32_t>(priority->as_int64(kMostUrgent, 0));
    }
  }
  return attributes;
}

LaunchSpec read_launch(const JsonNode& node, const SymbolTable& symbols, const KernelSpec& spec,
                       bool with_tunables) {
  node.expect_keys(
      {"entry", "arguments", "grid", "block", "shared_bytes", "cluster", "cooperative", "attributes"});
  LaunchSpec launch;
  launch.entry = read_entry(node.at("entry"), spec, with_tunables);
  launch.arguments = read_launch_arguments(node.at("arguments"), spec);
  launch.grid = read_axes(node.at("grid"), symbols);
  launch.block = read_axes(node.at("block"), symbols);
  if (const auto shared = node.find("shared_bytes")) {
    launch.shared_bytes = read_expression(*shared, symbols);
  }
  if (const auto cluster = node.find("cluster")) {
    launch.cluster = read_axes(*cluster, symbols);
  }
  launch.attributes = read_attributes(node);
  return launch;
}

std::vector<LaunchSpec> read_launch_list(const JsonNode& node, const SymbolTable& symbols,
                                         const KernelSpec& spec, bool with_tunables) {
  std::vector<LaunchSpec> launches;
  for (const JsonNode& element : elements_of(node, SpecLimits::kLaunches, "launches")) {
    launches.push_back(read_launch(element, symbols, spec, with_tunables));
  }
  return launches;
}

// What is evaluated to pass an argument.
std::vector<std::string> launch_expressions(const KernelSpec& spec, const ArgumentSpec& argument) {
  std::vector<std::string> texts;
  if (argument.tensor_map) {
    texts = launch_expressions(spec, *spec.argument(argument.tensor_map->buffer));
    for (const auto& [key, list] : kTensorMapLists) {
      const std::vector<std::string>& all = argument.tensor_map->map.*list;
      texts.insert(texts.end(), all.begin(), all.end());
    }
  } else if (argument.buffer || !argument.from_caller) {
    texts.push_back(argument.buffer ? argument.extent : argument.expr);
  }
  return texts;
}

// The reference runs once for all configurations: its arguments must not depend on tunables.
void check_reference_arguments(const JsonNode& launches, const SpecScopes& scopes, const KernelSpec& spec) {
  for (const JsonNode& launch : launches.elements()) {
    for (const JsonNode& element : launch.at("arguments").elements()) {
      const ArgumentSpec& argument = *spec.argument(element.as_string());
      for (const std::string& name : placeholders(argument.symbol, element.where())) {
        check_placeholder(element, name, spec, false);
      }
      for (const std::string& text : launch_expressions(spec, argument)) {
        const Expression expression = Expression::parse(text);
        for (const std::string& name : expression.variables()) {
          if (!scopes.reference.find(name)) {
            element.fail(quoted(argument.name) + " depends on the tunable " + quoted(name) +
                         ", which the reference does not know");
          }
        }
      }
    }
  }
}

// The option with the placeholder's tunable at each of its values; the option itself where it has none.
std::vector<std::string> expanded_option(const JsonNode& node, const KernelSpec& spec) {
  const std::string text = node.as_string();
  const std::vector<std::string> names = placeholders(text, node.where());
  if (names.empty()) {
    return {text};
  }
  const auto tunable = std::ranges::find(spec.tunables, names.front(), &Tunable::name);
  if (names.size() > 1 || tunable == spec.tunables.end()) {
    node.fail(
        "an option has one placeholder at most, and that is a tunable, as in --maxrregcount={REGISTERS}" +
        suggestion(names.front(), names_of(spec.tunables)));
  }
  std::vector<std::string> all;
  for (const std::int64_t value : tunable->values) {
    all.push_back(replace_placeholders(text, [&](std::string_view) { return std::to_string(value); }));
  }
  return all;
}

// The canonical spelling, with the placeholder where there is one; each value that it may have is on the
// allow-list.
std::string read_option(const JsonNode& node, const KernelSpec& spec) {
  const std::string text = node.as_string();
  std::string canonical;
  for (const std::string& one : expanded_option(node, spec)) {
    canonical = canonical_nvrtc_option(one, node.where());
  }
  return has_placeholders(text) ? canonical.substr(0, canonical.find('=')) + text.substr(text.find('='))
                                : canonical;
}

// Two options that contradict each other do so whatever the values: so each is checked with the first value
// of the others.
void check_options_together(const JsonNode& options, const KernelSpec& spec) {
  std::vector<std::string> first;
  for (const JsonNode& node : options.elements()) {
    first.push_back(expanded_option(node, spec).front());
  }
  const std::vector<JsonNode> nodes = options.elements();
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (const std::string& one : expanded_option(nodes[i], spec)) {
      std::vector<std::string> together = first;
      together[i] = one;
      canonical_nvrtc_options(together, options.where());
    }
  }
}

std::vector<std::string> read_options(const JsonNode& options, const KernelSpec& spec) {
  std::vector<std::string> canonical;
  for (const JsonNode& node : options.elements()) {
    canonical.push_back(read_option(node, spec));
  }
  check_options_together(options, spec);
  std::ranges::sort(canonical);
  const auto doubled = std::ranges::unique(canonical);
  canonical.erase(doubled.begin(), doubled.end());
  return canonical;
}

void read_reference_kernel(const JsonNode& node, const SpecScopes& scopes, KernelSpec& spec) {
  node.expect_keys({"source", "launches"});
  const auto source = node.find("source");
  spec.reference.kind = ReferenceSpec::Kind::Kernel;
  spec.reference.source = source ? read_path(*source) : spec.source;
  const JsonNode launches = node.at("launches");
  spec.reference.launches = read_launch_list(launches, scopes.reference, spec, false);
  check_reference_arguments(launches, scopes, spec);
}

}  // namespace

std::string read_compiled_text(const JsonNode& node, const KernelSpec& spec, bool with_tunables) {
  std::string text = node.as_nonempty_string();
  if (text.size() > SpecLimits::kEntryLength) {
    node.fail(std::to_string(text.size()) + " characters, at most " +
              std::to_string(SpecLimits::kEntryLength) + " are allowed");
  }
  for (const std::string& name : placeholders(text, node.where())) {
    check_placeholder(node, name, spec, with_tunables);
  }
  return text;
}

void read_launches(const JsonNode& root, const SpecScopes& scopes, KernelSpec& spec) {
  spec.launches = read_launch_list(root.at("launches"), scopes.launch, spec, true);
}

void read_reference(const JsonNode& root, const SpecScopes& scopes, KernelSpec& spec) {
  const JsonNode node = root.at("reference");
  if (node.is_string()) {
    node.as_choice({"default"});
    spec.reference.kind = ReferenceSpec::Kind::Default;
    return;
  }
  if (!node.is_object()) {
    node.fail("expected a reference kernel or \"default\", found " + node.type_name());
  }
  if (const auto expected = node.find("expected")) {
    expected->fail(
        "not supported yet: inputs are drawn again for each verification, so no file has their outputs; give "
        "a reference "
        "kernel, or \"default\"");
  }
  read_reference_kernel(node, scopes, spec);
}

void read_compilation(const JsonNode& root, KernelSpec& spec) {
  if (const auto options = root.find("options")) {
    elements_of(*options, SpecLimits::kListed, "options", 0);
    spec.options = read_options(*options, spec);
  }
  if (const auto defines = root.find("defines")) {
    for (const JsonNode& node : elements_of(*defines, SpecLimits::kListed, "defines", 0)) {
      spec.defines.push_back(read_compiled_text(node, spec, true));
      check_nvrtc_define(spec.defines.back(), node.where());
    }
  }
  if (const auto headers = root.find("headers")) {
    for (const JsonNode& node : elements_of(*headers, SpecLimits::kListed, "folders", 0)) {
      spec.headers.push_back(read_folder(node));
    }
  }
  spec.arch_features = root.bool_or("arch_features", false);
}

}  // namespace cubind
