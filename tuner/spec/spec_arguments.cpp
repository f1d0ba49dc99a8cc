#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>

#include "base/identifier.hpp"
#include "base/json.hpp"
#include "base/names_of.hpp"
#include "base/text.hpp"
#include "tuner/includes/nvrtc_options.hpp"
#include "tuner/spec/spec_sections.hpp"

namespace cubind {
namespace {

// A type name of the problem, or a fixed type in its printed spelling.
std::string read_argument_type(const JsonNode& node, const KernelSpec& spec, bool is_scalar) {
  std::string text = node.as_string();
  const std::vector<std::string> own = names_of(spec.types);
  if (std::ranges::find(own, text) != own.end()) {
    return text;
  }
  const auto fixed = parse_scalar_type(text);
  if (fixed && !is_scalar && !is_element_type(*fixed)) {
    node.fail(quoted(text) + " is a type of scalars alone: a buffer has one of " + join(dtype_names(), ", ") +
              ", and a pointer to unsigned integers takes the one of their size");
  }
  if (fixed) {
    return std::string(to_string(*fixed));
  }
  node.fail(quoted(text) + " is not a type" + dtype_suggestion(text, own));
}

// A fill's numbers in the order of `keys`, with the defaults where they are absent.
std::vector<double> read_numbers(const JsonNode& node,
                                 std::initializer_list<std::pair<std::string_view, double>> keys) {
  std::vector<double> numbers;
  for (const auto& [key, fallback] : keys) {
    numbers.push_back(node.number_or(key, fallback));
  }
  return numbers;
}

Fill plain_fill(const JsonNode& node, std::string_view name) {
  if (name == "normal") {
    return {Fill::Kind::Normal, {0, 1}, ""};
  }
  if (name == "uniform") {
    return {Fill::Kind::Uniform, {0, 1}, ""};
  }
  if (name == "iota") {
    return {Fill::Kind::Iota, {0, 1}, ""};
  }
  if (name == "permutation") {
    return {Fill::Kind::Permutation, {}, ""};
  }
  const std::string example = name == "constant" ? "{\"constant\": 1}"
                              : name == "choice" ? "{\"choice\": {\"count\": \"E\", \"zipf\": 1.2}}"
                              : name == "npy"    ? "{\"npy\": \"data.npy\"}"
                                                 : "{\"offsets\": {\"total\": \"N\"}}";
  node.fail(std::string(name) + " needs its values, as in " + example);
}

Fill read_fill_object(const JsonNode& node, const SpecScopes& scopes) {
  if (node.size() != 1) {
    node.fail("expected one fill, as in {\"uniform\": {\"low\": -1, \"high\": 1}}");
  }
  node.expect_keys({"normal", "uniform", "constant", "iota", "permutation", "choice", "offsets", "npy"});
  const JsonNode fill = node.members().front();
  if (fill.key() == "constant") {
    return {Fill::Kind::Constant, {fill.as_number()}, ""};
  }
  if (fill.key() == "normal") {
    fill.expect_keys({"mean", "stddev"});
    if (fill.number_or("stddev", 1) < 0) {
      fill.at("stddev").fail("must not be negative");
    }
    return {Fill::Kind::Normal, read_numbers(fill, {{"mean", 0}, {"stddev", 1}}), ""};
  }
  if (fill.key() == "uniform") {
    fill.expect_keys({"low", "high"});
    const auto range = read_numbers(fill, {{"low", 0}, {"high", 1}});
    if (range[0] >= range[1]) {
      fill.fail("low must be below high");
    }
    return {Fill::Kind::Uniform, range, ""};
  }
  if (fill.key() == "iota") {
    fill.expect_keys({"start", "step"});
    return {Fill::Kind::Iota, read_numbers(fill, {{"start", 0}, {"step", 1}}), ""};
  }
  if (fill.key() == "permutation") {
    fill.expect_keys({});
    return {Fill::Kind::Permutation, {}, ""};
  }
  if (fill.key() == "choice") {
    fill.expect_keys({"count", "zipf"});
    const double zipf = fill.number_or("zipf", 0);
    if (zipf < 0) {
      fill.at("zipf").fail("must not be negative");
    }
    return {Fill::Kind::Choice, {zipf}, read_expression(fill.at("count"), scopes.problem)};
  }
  if (fill.key() == "npy") {
    return {.kind = Fill::Kind::File, .parameters = {}, .expression = "", .file = read_path(fill)};
  }
  fill.expect_keys({"total", "sigma"});
  Fill offsets{Fill::Kind::Offsets, {}, read_expression(fill.at("total"), scopes.problem)};
  if (const auto sigma = fill.find("sigma")) {
    offsets.sigma = read_expression(*sigma, scopes.problem);
  }
  return offsets;
}

Fill read_fill(const JsonNode& node, const SpecScopes& scopes) {
  if (node.is_object()) {
    return read_fill_object(node, scopes);
  }
  constexpr std::string_view kNames[] = {"normal",      "uniform", "constant", "iota",
                                         "permutation", "choice",  "offsets",  "npy"};
  const std::size_t choice = node.as_choice(
      {kNames[0], kNames[1], kNames[2], kNames[3], kNames[4], kNames[5], kNames[6], kNames[7]});
  return plain_fill(node, kNames[choice]);
}

// "N*D", "N*(D + 1)".
std::string read_product(const JsonNode& node, const std::vector<std::string>& axes) {
  std::vector<std::string> factors;
  for (const std::string& axis : axes) {
    const bool plain =
        is_identifier(axis) || std::ranges::all_of(axis, [](char c) { return c >= '0' && c <= '9'; });
    factors.push_back(plain || axes.size() == 1 ? axis : "(" + axis + ")");
  }
  std::string product = join(factors, "*");
  try {
    Expression::parse(product, expression_limits());
  } catch (const ExpressionError& error) {
    node.fail("the product of the axes: " + error.cause());
  }
  return product;
}

bool may_be_integer(const ArgumentSpec& argument, const KernelSpec& spec) {
  if (const auto fixed = parse_dtype(argument.type)) {
    return !is_floating(*fixed);
  }
  for (const TypeSpec& type : spec.types) {
    if (type.name == argument.type) {
      return std::ranges::any_of(type.choices, [](DType choice) { return !is_floating(choice); });
    }
  }
  return false;
}

Role read_role(const JsonNode& node) {
  constexpr Role kRoles[] = {Role::In, Role::Out, Role::InOut, Role::Zero, Role::Scratch};
  return kRoles[node.as_choice({"in", "out", "inout", "zero", "scratch"})];
}

// A buffer's shape is its extent, axis by axis. check_spec() compares it with an extent that is
// given too.
void read_extent(const JsonNode& node, const SymbolTable& symbols, ArgumentSpec& argument) {
  if (const auto shape = node.find("shape")) {
    argument.shape = read_axes(*shape, symbols, SpecLimits::kShapeAxes);
  }
  if (const auto extent = node.find("extent")) {
    argument.extent = read_expression(*extent, symbols);
  } else if (argument.shape.empty()) {
    node.fail("a buffer has a \"shape\", as in [\"N\", \"D\"], or an \"extent\", as in \"N*D\"");
  } else {
    argument.extent = read_product(node.at("shape"), argument.shape);
  }
}

std::string read_symbol(const JsonNode& node, Role role, const KernelSpec& spec) {
  if (role != Role::In && role != Role::Scratch) {
    node.fail(
        "a variable can be an input (role in) or keep what kernels leave in it (role scratch): pass an "
        "output as a parameter");
  }
  std::string text = read_compiled_text(node, spec, true);
  if (!is_letter(text.front()) && text.front() != ':') {
    node.fail(
        "expected the name of a __constant__ or __device__ variable, as in \"d_filter\" or "
        "\"filter<{T}>\"");
  }
  check_name_expression(text, node.where());
  const auto other = std::ranges::find(spec.arguments, text, &ArgumentSpec::symbol);
  if (other != spec.arguments.end()) {
    node.fail("the variable has the content of " + quoted(other->name) + " already");
  }
  return text;
}

ArgumentSpec read_buffer(const JsonNode& node, const SpecScopes& scopes, const KernelSpec& spec) {
  if (const auto optional = node.find("optional")) {
    optional->fail(
        "a buffer that may be left out has no elements then: give the problem a flag, as in \"extent\": "
        "\"BIAS * D\", and the kernel gets null where it is 0");
  }
  node.expect_keys({"buffer", "extent", "shape", "role", "symbol", "align", "fill", "timed",
                    "constant_output", "partial"});
  ArgumentSpec argument;
  argument.type = read_argument_type(node.at("buffer"), spec, false);
  argument.role = read_role(node.at("role"));
  if (const auto symbol = node.find("symbol")) {
    argument.symbol = read_symbol(*symbol, argument.role, spec);
  }
  // A caller's buffer has the extent of its problem; a buffer that only the variant uses may depend on the
  // tunables.
  const bool internal = argument.role == Role::Scratch || argument.role == Role::Zero;
  read_extent(node, internal ? scopes.launch : scopes.problem, argument);
  if (const auto align = node.find("align")) {
    const std::int64_t bytes = align->as_int64(1, 4096);
    if (!std::has_single_bit(static_cast<std::uint64_t>(bytes))) {
      align->fail(std::to_string(bytes) + " is not a power of two");
    }
    argument.align_bytes = static_cast<std::uint32_t>(bytes);
  }
  const bool input = argument.role == Role::In || argument.role == Role::InOut;
  if (const auto fill = node.find("fill")) {
    if (!input) {
      fill->fail("only arguments of role in and inout are filled");
    }
    argument.fill = read_fill(*fill, scopes);
  } else if (input) {
    if (may_be_integer(argument, spec)) {
      node.fail("an integer input needs a fill, as in \"fill\": {\"choice\": {\"count\": 8}}");
    }
    argument.fill = {Fill::Kind::Normal, {0, 1}, ""};
  }
  if (const auto timed = node.find("timed")) {
    if (argument.role != Role::Zero) {
      timed->fail("only clearing a buffer of role zero can be timed");
    }
    if (spec.triton && timed->is_array()) {
      for (const JsonNode& index : timed->elements()) {
        argument.cleared_by.push_back(index.as_int64());
      }
    }
    argument.timed_zero = !argument.cleared_by.empty() || timed->as_bool();
  }
  if (const auto constant = node.find("constant_output")) {
    if (!is_output(argument)) {
      constant->fail("only an output (role out, inout or zero) can be constant");
    }
    argument.constant_output = constant->as_bool();
  }
  if (const auto partial = node.find("partial")) {
    if (argument.role != Role::Out) {
      partial->fail("only a buffer of role out can be partial: the others have a content before the launch");
    }
    argument.partial_sums = partial->is_string() && partial->as_choice({"sums"}) == 0;
    argument.partial = argument.partial_sums || partial->as_bool();
  }
  return argument;
}

void check_bench(const JsonNode& node, const std::string& type) {
  const auto fixed = parse_scalar_type(type);
  if (!fixed || is_floating(*fixed)) {
    return;
  }
  if (node.as_number() != std::floor(node.as_number())) {
    node.fail("a scalar of type " + type + " is an integer");
  }
}

// A fraction is cut to an integer, and the kernel computes with 0 where 1 / D was meant.
void check_no_fraction(const JsonNode& node, const ArgumentSpec& argument) {
  const auto type = parse_scalar_type(argument.type);
  if (type && is_floating(*type) && argument.expr.find('/') != std::string::npos) {
    node.fail(
        "expressions are integers, so that " + argument.expr +
        " has no fraction: compute it in the kernel, or let the caller pass it, with \"from\": \"caller\"");
  }
}

// Numbers that JSON lacks. They are part of a kernel's name, since they may change what it does.
double read_exactly(const JsonNode& node, const ArgumentSpec& argument) {
  const std::size_t which = node.as_choice({"inf", "-inf", "nan"});
  const auto type = parse_scalar_type(argument.type);
  if (!type || !is_floating(*type)) {
    node.fail("a scalar of type " + argument.type + " is an integer");
  }
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNumbers[] = {kInfinity, -kInfinity, std::numeric_limits<double>::quiet_NaN()};
  return kNumbers[which];
}

ArgumentSpec read_scalar(const JsonNode& node, const SpecScopes& scopes, const KernelSpec& spec) {
  node.expect_keys({"scalar", "expr", "from", "bench", "exactly"});
  ArgumentSpec argument;
  argument.buffer = false;
  argument.type = read_argument_type(node.at("scalar"), spec, true);
  const auto from = node.find("from");
  if (node.contains("expr") == from.has_value()) {
    node.fail("a scalar has either \"expr\", or \"from\": \"caller\" and \"bench\"");
  }
  if (!from) {
    if (const auto bench = node.find("bench")) {
      bench->fail("only a caller's scalar has a value for the benchmark");
    }
    argument.expr = read_expression(node.at("expr"), scopes.launch);
    check_no_fraction(node.at("expr"), argument);
    return argument;
  }
  from->as_choice({"caller"});
  argument.from_caller = true;
  if (const auto exactly = node.find("exactly"); exactly && spec.triton) {
    argument.bench = read_exactly(*exactly, argument);
    return argument;
  }
  const JsonNode bench = node.at("bench");
  argument.bench = bench.as_number();
  check_bench(bench, argument.type);
  return argument;
}

}  // namespace

void read_arguments(const JsonNode& root, const SpecScopes& scopes, KernelSpec& spec) {
  const JsonNode arguments = root.at("arguments");
  if (arguments.is_object() && arguments.members().empty()) {
    arguments.fail(kNoOutput);
  }
  for (const JsonNode& node : members_of(arguments, SpecLimits::kArguments, "arguments")) {
    const std::string name = read_name(node, false);
    const bool is_map = node.contains("tensor_map") && !spec.triton;
    if (int{node.contains("buffer")} + int{node.contains("scalar")} + int{is_map} != 1) {
      node.fail("an argument is one of a \"buffer\", a \"scalar\" and a \"tensor_map\"");
    }
    ArgumentSpec argument;
    if (!is_map) {
      argument = node.contains("buffer") ? read_buffer(node, scopes, spec) : read_scalar(node, scopes, spec);
    }
    argument.name = name;
    argument.buffer = argument.buffer && !is_map;
    spec.arguments.push_back(std::move(argument));
  }
  for (ArgumentSpec& argument : spec.arguments) {
    if (const JsonNode node = arguments.at(argument.name); node.contains("tensor_map")) {
      read_tensor_map(node, scopes, spec, argument);
    }
  }
}

}  // namespace cubind
