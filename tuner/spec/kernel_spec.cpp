#include "tuner/spec/kernel_spec.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>

#include "base/names_of.hpp"
#include "base/refuse.hpp"
#include "base/text.hpp"
#include "plan/expr/expression.hpp"
#include "schemas/limits.hpp"
#include "tuner/spec/npy.hpp"

namespace cubind {
namespace {

std::string spelled_types(const std::vector<DType>& types) {
  std::vector<std::string> texts;
  for (const DType type : types) {
    texts.emplace_back(to_string(type));
  }
  return join(texts, ", ");
}

// The spec tells dims and flags apart, not the problem's text.
std::vector<NamedValue> dims_and_flags(const Problem& problem, std::string_view field) {
  std::vector<NamedValue> all = problem.dims;
  for (const NamedValue& flag : problem.flags) {
    if (problem.dim(flag.name)) {
      refuse(field, quoted(flag.name) + " is given twice");
    }
    all.push_back(flag);
  }
  return all;
}

std::optional<std::int64_t> find(const std::vector<NamedValue>& values, std::string_view name) {
  const auto found = std::ranges::find(values, name, &NamedValue::name);
  return found == values.end() ? std::nullopt : std::optional(found->value);
}

void check_known(const std::vector<std::string>& given, const std::vector<std::string>& known,
                 std::string_view what, std::string_view kernel, std::string_view field) {
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (std::ranges::find(known, given[i]) == known.end()) {
      refuse(field, quoted(given[i]) + " is not a " + std::string(what) + " of " + std::string(kernel) +
                        suggestion(given[i], known));
    }
    if (std::ranges::find(given, given[i]) != given.begin() + static_cast<std::ptrdiff_t>(i)) {
      refuse(field, quoted(given[i]) + " is given twice");
    }
  }
}

std::int64_t checked_dim(const DimSpec& dim, const std::vector<NamedValue>& given, std::string_view kernel,
                         std::string_view field) {
  const auto value = find(given, dim.name);
  if (!value) {
    refuse(field, "the dim " + quoted(dim.name) + " of " + std::string(kernel) + " is missing" +
                      (dim.description.empty() ? "" : " (" + dim.description + ")"));
  }
  if (*value < dim.minimum || *value > kMaxDim) {
    refuse(field, dim.name + " = " + std::to_string(*value) + " is not in " + std::to_string(dim.minimum) +
                      " to 2^48");
  }
  return *value;
}

DType checked_type(const TypeSpec& type, const Problem& problem, std::string_view kernel,
                   std::string_view field) {
  const auto given = problem.type(type.name);
  if (!given) {
    refuse(field, "the type " + quoted(type.name) + " of " + std::string(kernel) + " is missing (one of " +
                      spelled_types(type.choices) + ")");
  }
  if (std::ranges::find(type.choices, *given) == type.choices.end()) {
    refuse(field, type.name + " = " + std::string(to_string(*given)) + " is not listed by " +
                      std::string(kernel) + " (one of " + spelled_types(type.choices) + ")");
  }
  return *given;
}

Scope problem_scope(const Problem& problem) {
  Scope scope;
  for (const NamedValue& dim : problem.dims) {
    scope.set(dim.name, dim.value);
  }
  for (const NamedValue& flag : problem.flags) {
    scope.set(flag.name, flag.value);
  }
  for (const TypeBinding& type : problem.types) {
    scope.set_sizeof(type.name, static_cast<std::int64_t>(size_of(type.type)));
  }
  return scope;
}

std::int64_t evaluate(const std::string& text, const Scope& scope, const std::string& where) {
  try {
    return Expression::parse(text).evaluate(scope);
  } catch (const ExpressionError& error) {
    refuse(where, error.what());
  }
}

std::int64_t evaluate_count(const std::string& text, const Scope& scope, const Problem& problem,
                            const std::string& where) {
  const std::int64_t value = evaluate(text, scope, where);
  if (value < 0) {
    refuse(where, quoted(text) + " is " + std::to_string(value) + " for " + to_string(problem));
  }
  return value;
}

std::string location_of_data(const KernelSpec& spec, const ArgumentSpec& argument) {
  return spec.file + " /arguments/" + argument.name + "/fill/npy";
}

NpyArray read_data(const KernelSpec& spec, const ArgumentSpec& argument) {
  const std::string where = location_of_data(spec, argument);
  const SourceFile* found = spec.bundled_file(argument.fill.file);
  if (found == nullptr) {
    throw Error(ErrorCode::Internal, where, quoted(argument.fill.file) + " is not in the bundle");
  }
  return read_npy(found->content, where + " (" + argument.fill.file + ")");
}

double bound_value(const BoundSpec& bound, const Scope& scope, const Problem& problem,
                   const std::string& where) {
  if (bound.kind == BoundSpec::Kind::Number) {
    return bound.factor;
  }
  const auto value = static_cast<double>(evaluate_count(bound.expression, scope, problem, where));
  return bound.factor * (bound.kind == BoundSpec::Kind::SquareRoot ? std::sqrt(value) : value);
}

BucketRule::Interval edges_interval(const std::vector<std::int64_t>& edges, std::int64_t value) {
  const auto upper = std::ranges::lower_bound(edges, value);
  if (upper == edges.end()) {
    return {value, value};
  }
  // The first bucket has no lower neighbour: a quarter of its edge keeps the factor of 4 that holds between
  // the others.
  const std::int64_t below = upper == edges.begin() ? *upper / 4 : *std::prev(upper);
  if (value <= below) {
    return {value, value};
  }
  return {below + 1, *upper};
}

}  // namespace

BucketRule::Interval BucketRule::interval(std::int64_t value) const {
  switch (kind) {
    case Kind::Exact:
      return {value, value};
    case Kind::Edges:
      return edges_interval(edges, value);
    case Kind::Pow2: {
      if (value <= 1 || value > kMaxDim) {
        return {value, value};
      }
      const auto upper = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(value)));
      return {upper / 2 + 1, upper};
    }
  }
  throw Error(ErrorCode::Internal, "bucket", "unknown kind");
}

std::string_view to_string(Fill::Kind kind) {
  switch (kind) {
    case Fill::Kind::Normal:
      return "normal";
    case Fill::Kind::Uniform:
      return "uniform";
    case Fill::Kind::Constant:
      return "constant";
    case Fill::Kind::Iota:
      return "iota";
    case Fill::Kind::Permutation:
      return "permutation";
    case Fill::Kind::Choice:
      return "choice";
    case Fill::Kind::Offsets:
      return "offsets";
    case Fill::Kind::File:
      return "file";
  }
  throw Error(ErrorCode::Internal, "fill", "unknown kind");
}

bool is_output(const ArgumentSpec& argument) {
  return argument.role == Role::Out || argument.role == Role::InOut || argument.role == Role::Zero;
}

Problem KernelSpec::canonicalize(const Problem& problem, std::string_view field) const {
  const auto values = dims_and_flags(problem, field);
  auto known = names_of(dims);
  const auto flag_names = names_of(flags);
  known.insert(known.end(), flag_names.begin(), flag_names.end());
  check_known(names_of(values), known, flags.empty() ? "dim" : "dim or flag", name, field);
  check_known(names_of(problem.types), names_of(types), "type", name, field);
  if (!problem.scenario.empty()) {
    refuse(field, quoted(problem.scenario) + " is not a scenario of " + name + ", it has none");
  }
  Problem canonical;
  for (const DimSpec& dim : dims) {
    canonical.dims.push_back({dim.name, checked_dim(dim, values, name, field)});
  }
  for (const TypeSpec& type : types) {
    canonical.types.push_back({type.name, checked_type(type, problem, name, field)});
  }
  for (const NamedValue& flag : flags) {
    canonical.flags.push_back({flag.name, find(values, flag.name).value_or(flag.value)});
  }
  return canonical;
}

Configuration KernelSpec::canonicalize(const Configuration& configuration, std::string_view field) const {
  check_known(names_of(configuration.values), names_of(tunables), "tunable", name, field);
  Configuration canonical;
  for (const Tunable& tunable : tunables) {
    const auto value = configuration.value(tunable.name);
    if (!value) {
      refuse(field, "the tunable " + quoted(tunable.name) + " is missing");
    }
    if (std::ranges::find(tunable.values, *value) == tunable.values.end()) {
      refuse(field, tunable.name + " = " + std::to_string(*value) + " is not listed (one of " +
                        join(tunable.values, ", ") + ")");
    }
    canonical.values.push_back({tunable.name, *value});
  }
  return canonical;
}

std::vector<BucketRule::Interval> KernelSpec::bucket(const Problem& problem) const {
  std::vector<BucketRule::Interval> intervals;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    intervals.push_back(dims[i].bucket.interval(problem.dims.at(i).value));
  }
  return intervals;
}

Problem KernelSpec::representative(const Problem& problem) const {
  Problem result = problem;
  const auto intervals = bucket(problem);
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    result.dims[i].value = intervals[i].upper;
  }
  return result;
}

std::optional<double> KernelSpec::distance(const Problem& a, const Problem& b) {
  if (a.types != b.types || a.flags != b.flags || a.scenario != b.scenario ||
      a.dims.size() != b.dims.size()) {
    return std::nullopt;
  }
  double sum = 0;
  for (std::size_t i = 0; i < a.dims.size(); ++i) {
    if (a.dims[i].name != b.dims[i].name) {
      return std::nullopt;
    }
    if (a.dims[i].value == b.dims[i].value) {
      continue;
    }
    if (a.dims[i].value <= 0 || b.dims[i].value <= 0) {
      return std::nullopt;
    }  // nothing is near to an empty problem
    sum += std::abs(std::log2(static_cast<double>(a.dims[i].value) / static_cast<double>(b.dims[i].value)));
  }
  return sum;
}

const ArgumentSpec* KernelSpec::argument(std::string_view wanted) const {
  const auto found = std::ranges::find(arguments, wanted, &ArgumentSpec::name);
  return found == arguments.end() ? nullptr : &*found;
}

std::vector<std::string> KernelSpec::outputs_along(std::string_view dim) const {
  std::vector<std::string> names;
  for (const ArgumentSpec& one : arguments) {
    if (!is_output(one)) {
      continue;
    }
    const std::vector<std::string> variables = Expression::parse(one.extent).variables();
    if (std::ranges::find(variables, dim) != variables.end()) {
      names.push_back(one.name);
    }
  }
  return names;
}

const Tolerance* KernelSpec::tolerance(std::string_view output, DType type) const {
  const Tolerance* found = nullptr;
  for (const Tolerance& one : tolerances) {
    if (one.type == type && (one.output == output || (one.output.empty() && found == nullptr))) {
      found = &one;
    }
  }
  return found;
}

const SourceFile* KernelSpec::bundled_file(std::string_view path) const {
  const auto found = std::ranges::find(bundle.files, path, &SourceFile::path);
  return found == bundle.files.end() ? nullptr : &*found;
}

DType KernelSpec::element_type(const ArgumentSpec& argument, const Problem& problem) const {
  if (const auto bound = problem.type(argument.type)) {
    return *bound;
  }
  if (const auto fixed = parse_scalar_type(argument.type)) {
    return *fixed;
  }
  throw Error(ErrorCode::Internal, file,
              "the type " + quoted(argument.type) + " of " + argument.name + " is not bound");
}

std::vector<std::int64_t> KernelSpec::shape(const ArgumentSpec& argument, const Problem& problem) const {
  std::vector<std::int64_t> axes;
  for (const std::string& axis : argument.shape) {
    axes.push_back(evaluate_count(axis, problem_scope(problem), problem,
                                  file + " /arguments/" + argument.name + "/shape"));
  }
  return axes;
}

Fill KernelSpec::resolved_fill(const ArgumentSpec& argument, const Problem& problem) const {
  Fill result = argument.fill;
  if (result.expression.empty()) {
    return result;
  }
  const std::string where = file + " /arguments/" + argument.name + "/fill";
  const std::int64_t count = evaluate(result.expression, problem_scope(problem), where);
  if (const int least = result.kind == Fill::Kind::Choice ? 1 : 0; count < least) {
    refuse(where, quoted(result.expression) + " is " + std::to_string(count) + " for " + to_string(problem) +
                      ", at least " + std::to_string(least) + " is meant");
  }
  result.parameters.insert(result.parameters.begin(), static_cast<double>(count));
  if (!result.sigma.empty()) {
    result.parameters.push_back(
        static_cast<double>(evaluate_count(result.sigma, problem_scope(problem), problem, where)));
  }
  return result;
}

void KernelSpec::check_file_type(const ArgumentSpec& argument, const Problem& problem) const {
  const NpyArray array = read_data(*this, argument);
  const DType type = element_type(argument, problem);
  const bool is_float8 = type == DType::E4m3 || type == DType::E5m2;  // which NumPy has as bytes
  if (array.type != type && !(is_float8 && array.type == DType::U8)) {
    refuse(location_of_data(*this, argument), quoted(argument.fill.file) + " has elements of " +
                                                  std::string(to_string(array.type)) + ", the buffer has " +
                                                  std::string(to_string(type)) +
                                                  ": convert the array with astype() before numpy.save()");
  }
}

NpyArray KernelSpec::file_data(const ArgumentSpec& argument, const Problem& problem) const {
  check_file_type(argument, problem);
  NpyArray array = read_data(*this, argument);
  const auto elements = static_cast<std::uint64_t>(evaluate_count(
      argument.extent, problem_scope(problem), problem, file + " /arguments/" + argument.name + "/extent"));
  if (array.elements != elements) {
    const std::string of = to_string(problem);
    refuse(location_of_data(*this, argument), quoted(argument.fill.file) + " has the shape " +
                                                  shape_text(array) + ", " + std::to_string(array.elements) +
                                                  " elements; the buffer has " + std::to_string(elements) +
                                                  (of.empty() ? "" : " for " + of));
  }
  return array;
}

ToleranceBounds KernelSpec::bounds(const ArgumentSpec& output, const Problem& problem) const {
  const DType type = element_type(output, problem);
  const Tolerance* found = tolerance(output.name, type);
  if (found == nullptr) {
    throw Error(ErrorCode::Internal, file,
                output.name + " has no tolerance for " + std::string(to_string(type)));
  }
  const std::string where = file + " /tolerance/" +
                            (found->output.empty() ? "" : "outputs/" + found->output + "/") +
                            std::string(to_string(type));
  const Scope scope = problem_scope(problem);
  return {bound_value(found->rtol, scope, problem, where + "/rtol"),
          bound_value(found->atol, scope, problem, where + "/atol")};
}

WorkSizes KernelSpec::work_sizes(const Problem& problem) const {
  const Scope scope = problem_scope(problem);
  const auto size = [&](const std::string& text, const char* key) -> std::optional<std::uint64_t> {
    if (text.empty()) {
      return std::nullopt;
    }
    const std::string where = file + " /work/" + key;
    return static_cast<std::uint64_t>(evaluate_count(text, scope, problem, where));
  };
  return {size(work.bytes, "bytes"), size(work.min_read_bytes, "min_read_bytes"), size(work.flops, "flops")};
}

}  // namespace cubind
