#include <algorithm>
#include <set>
#include <string>

#include "base/json.hpp"
#include "base/text.hpp"
#include "tuner/spec/placeholders.hpp"
#include "tuner/spec/spec_sections.hpp"

namespace cubind {
namespace {

using Names = std::set<std::string, std::less<>>;

void use_expression(const std::string& text, Names& names) {
  if (text.empty()) {
    return;
  }
  const Expression expression = Expression::parse(text);
  for (const std::string& name : expression.variables()) {
    names.insert(name);
  }
}

void use_text(const std::string& text, Names& names) {
  for (std::string& name : placeholders(text, "")) {
    names.insert(std::move(name));
  }
}

void use_launches(const std::vector<LaunchSpec>& launches, Names& names) {
  for (const LaunchSpec& launch : launches) {
    use_text(launch.entry, names);
    for (const auto* axes : {&launch.grid, &launch.block, &launch.cluster}) {
      for (const std::string& axis : *axes) {
        use_expression(axis, names);
      }
    }
    use_expression(launch.shared_bytes, names);
  }
}

const std::vector<std::string> kNoTexts;

// The names that reach a compiler or a launch. A tunable outside of them would give several configurations
// with the same trial key.
Names effective_names(const KernelSpec& spec) {
  Names names;
  use_launches(spec.launches, names);
  for (const std::string& define : spec.defines) {
    use_text(define, names);
  }
  for (const std::string& option : spec.options) {
    use_text(option, names);
  }
  for (const ArgumentSpec& argument : spec.arguments) {
    use_expression(argument.extent, names);
    use_expression(argument.expr, names);
    use_expression(argument.fill.expression, names);
    use_expression(argument.fill.sigma, names);
    use_text(argument.symbol, names);
    names.insert(argument.type);
    for (const auto& [key, list] : kTensorMapLists) {
      for (const std::string& text : argument.tensor_map ? argument.tensor_map->map.*list : kNoTexts) {
        use_expression(text, names);
      }
    }
  }
  return names;
}

bool uses_type(const Names& names, const std::string& type) {
  return names.contains(type) || names.contains(sizeof_variable(type));
}

void check_tunables(const JsonNode& root, const KernelSpec& spec, const Names& effective) {
  for (const Tunable& tunable : spec.tunables) {
    if (!effective.contains(tunable.name)) {
      root.at("tunables")
          .at(tunable.name)
          .fail("no entry, define, option or launch expression uses " + quoted(tunable.name));
    }
  }
}

void check_problem(const JsonNode& root, const KernelSpec& spec, Names names) {
  use_launches(spec.reference.launches, names);
  for (const std::string& constraint : spec.constraints) {
    use_expression(constraint, names);
  }
  const JsonNode problem = root.at("problem");
  for (const DimSpec& dim : spec.dims) {
    if (!names.contains(dim.name)) {
      problem.at("dims").at(dim.name).fail("nothing uses the dim " + quoted(dim.name));
    }
  }
  for (const TypeSpec& type : spec.types) {
    if (!uses_type(names, type.name)) {
      problem.at("types").at(type.name).fail("nothing uses the type " + quoted(type.name));
    }
  }
  for (const NamedValue& flag : spec.flags) {
    if (!names.contains(flag.name)) {
      problem.at("flags").at(flag.name).fail("nothing uses the flag " + quoted(flag.name));
    }
  }
}

void check_specialized(const JsonNode& root, const KernelSpec& spec) {
  Names texts;
  for (const LaunchSpec& launch : spec.launches) {
    use_text(launch.entry, texts);
  }
  for (const LaunchSpec& launch : spec.reference.launches) {
    use_text(launch.entry, texts);
  }
  for (const std::string& define : spec.defines) {
    use_text(define, texts);
  }
  for (const ArgumentSpec& argument : spec.arguments) {
    use_text(argument.symbol, texts);
  }
  const auto specialize = root.find("specialize");
  if (!specialize) {
    return;
  }
  for (const JsonNode& node : specialize->elements()) {
    if (!texts.contains(node.as_string())) {
      node.fail("no entry or define has {" + node.as_string() + "}: it is compiled in nowhere");
    }
  }
}

// With the buffers whose tensor maps are launched.
Names launched_arguments(const KernelSpec& spec, const std::vector<LaunchSpec>& launches) {
  Names names;
  for (const LaunchSpec& launch : launches) {
    for (const std::string& name : launch.arguments) {
      names.insert(name);
      if (const auto& map = spec.argument(name)->tensor_map) {
        names.insert(map->buffer);
      }
    }
  }
  return names;
}

// A file has one size, and the winner of a bucket is verified at several.
void check_file_fill(const JsonNode& node, const KernelSpec& spec, const ArgumentSpec& argument) {
  if (argument.fill.kind != Fill::Kind::File) {
    return;
  }
  Names names;
  use_expression(argument.extent, names);
  for (const DimSpec& dim : spec.dims) {
    if (names.contains(dim.name) && dim.bucket.kind != BucketRule::Kind::Exact) {
      node.at("fill").fail("a file has one size, and " + quoted(dim.name) +
                           " is bucketed: leave it out of /problem/bucket");
    }
  }
}

}  // namespace

void check_arguments(const JsonNode& root, const KernelSpec& spec) {
  const Names launched = launched_arguments(spec, spec.launches);
  const Names referenced = launched_arguments(spec, spec.reference.launches);
  const JsonNode arguments = root.at("arguments");
  bool has_output = false;
  for (const ArgumentSpec& argument : spec.arguments) {
    const JsonNode node = arguments.at(argument.name);
    const bool output = argument.role == Role::Out || argument.role == Role::InOut;
    has_output = has_output || output || argument.role == Role::Zero;
    check_file_fill(node, spec, argument);
    if (output && !launched.contains(argument.name)) {
      node.fail("no launch is given this output");
    }
    if (!launched.contains(argument.name) && !referenced.contains(argument.name)) {
      node.fail("no launch is given this argument");
    }
    if (spec.reference.kind == ReferenceSpec::Kind::Kernel && output && !referenced.contains(argument.name)) {
      node.fail("the reference does not write this output: no launch of /reference is given it");
    }
  }
  if (!has_output) {
    arguments.fail(kNoOutput);
  }
}

void check_spec(const JsonNode& root, const KernelSpec& spec) {
  const Names effective = effective_names(spec);
  check_tunables(root, spec, effective);
  check_problem(root, spec, effective);
  check_specialized(root, spec);
  check_arguments(root, spec);
  check_tolerances(root, spec);
  check_shapes(root, spec);
}

}  // namespace cubind
