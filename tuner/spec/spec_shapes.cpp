// A shape that is given with an extent has as many elements. Two expressions cannot be compared by their
// text, so they are evaluated for problems that the spec takes; each plan evaluates them again for
// its own.
#include <optional>
#include <set>
#include <string>

#include "base/json.hpp"
#include "base/text.hpp"
#include "plan/launch_plan.hpp"
#include "tuner/spec/spec_sections.hpp"

namespace cubind {
namespace {

// Sizes of the dims in declared order: equal ones, ones that share no factor, ones that divide each other.
std::vector<std::vector<std::int64_t>> sampled_sizes(std::size_t dims) {
  constexpr std::int64_t kPrimes[SpecLimits::kDims] = {2,  3,  5,  7,  11, 13, 17, 19,
                                                       23, 29, 31, 37, 41, 43, 47, 53};
  std::vector<std::vector<std::int64_t>> samples;
  for (const std::int64_t size : {1, 64, 128, 4096}) {
    samples.emplace_back(dims, size);
  }
  samples.emplace_back(kPrimes, kPrimes + dims);
  std::vector<std::int64_t> powers, falling;
  for (std::size_t i = 0; i < dims; ++i) {
    powers.push_back(std::int64_t{64} << i);
    falling.push_back(std::int64_t{64} << (dims - i));
  }
  samples.push_back(powers);
  samples.push_back(falling);
  return samples;
}

Scope sample(const KernelSpec& spec, const std::vector<std::int64_t>& sizes,
             const Configuration& configuration) {
  Scope scope{{"device.sm_count", 132},
              {"device.shared_optin", 232448},
              {"device.l2_bytes", 62914560},
              {"device.cc", 90}};
  for (std::size_t i = 0; i < spec.dims.size(); ++i) {
    scope.set(spec.dims[i].name, sizes[i]);
  }
  for (const TypeSpec& type : spec.types) {
    scope.set_sizeof(type.name, static_cast<std::int64_t>(size_of(type.choices.front())));
  }
  for (const NamedValue& flag : spec.flags) {
    scope.set(flag.name, flag.value);
  }
  for (const NamedValue& value : configuration.values) {
    scope.set(value.name, value.value);
  }
  return scope;
}

// The samples that the spec takes. One for which an expression fails is none of them.
std::vector<Scope> valid_samples(const KernelSpec& spec) {
  std::vector<Scope> samples;
  const auto add = [&](Scope scope) {
    try {
      for (const std::string& constraint : spec.constraints) {
        if (!Expression::parse(constraint).evaluate_bool(scope)) {
          return;
        }
      }
      samples.push_back(std::move(scope));
    } catch (const ExpressionError&) {
    }
  };
  for (const auto& sizes : sampled_sizes(spec.dims.size())) {
    for (const Configuration& configuration : spec.defaults) {
      const Scope with_defaults = sample(spec, sizes, configuration);
      add(with_defaults);
      for (const NamedValue& flag : spec.flags) {
        Scope flipped = with_defaults;
        flipped.set(flag.name, flag.value == 0 ? 1 : 0);
        add(std::move(flipped));
      }
    }
  }
  return samples;
}

std::string bindings(const ArgumentSpec& argument, const Scope& scope) {
  std::set<std::string> names;
  std::vector<std::string> texts = argument.shape;
  texts.push_back(argument.extent);
  for (const std::string& text : texts) {
    const Expression expression = Expression::parse(text);
    names.insert(expression.variables().begin(), expression.variables().end());
  }
  std::vector<std::string> values;
  for (const std::string& name : names) {
    values.push_back(name + " = " + std::to_string(*scope.find(name)));
  }
  return values.empty() ? "" : " where " + join(values, ", ");
}

void check_shape(const JsonNode& node, const ArgumentSpec& argument, const Scope& scope) {
  try {
    const std::int64_t extent = Expression::parse(argument.extent).evaluate(scope);
    std::vector<std::int64_t> axes;
    for (const std::string& axis : argument.shape) {
      axes.push_back(Expression::parse(axis).evaluate(scope));
    }
    if (element_count(axes) != extent) {
      node.at("shape").fail("[" + join(axes, ", ") + "] does not have the " + std::to_string(extent) +
                            " elements of the extent " + quoted(argument.extent) + bindings(argument, scope) +
                            ": give one of the two alone, or make them agree");
    }
  } catch (const ExpressionError&) {  // a plan that needs this value refuses it by name
  }
}

}  // namespace

void check_shapes(const JsonNode& root, const KernelSpec& spec) {
  const JsonNode arguments = root.at("arguments");
  std::optional<std::vector<Scope>> samples;
  for (const ArgumentSpec& argument : spec.arguments) {
    const JsonNode node = arguments.at(argument.name);
    if (!node.contains("shape") || !node.contains("extent")) {
      continue;
    }
    if (!samples) {
      samples = valid_samples(spec);
    }
    for (const Scope& scope : *samples) {
      check_shape(node, argument, scope);
    }
  }
}

}  // namespace cubind
