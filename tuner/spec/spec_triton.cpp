// A spec whose language is Triton: what stands in it, and the sections that follow from that.
//
// Its name ends with the digest of everything that decides what is compiled, which problem is meant and what
// counts as a right result: no caller can define another kernel, or a weaker check, under the same name.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "base/digest.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "tuner/includes/nvrtc_options.hpp"
#include "tuner/spec/spec_sections.hpp"

namespace cubind {
namespace {

constexpr std::string_view kFormat = "cubind.triton/2";
constexpr std::string_view kTunable = "CONFIG";
constexpr std::size_t kNameDigits = 20;  // of the digest, in the name
constexpr std::int64_t kMaxIndex = 100'000;
constexpr std::size_t kMaxTrailing = 4;
constexpr std::int64_t kWarp = 32;
constexpr double kMaxTolerance = 1e6;
constexpr std::array<std::string_view, 7> kOfOneCall = {"extent", "shape", "align", "fill",
                                                        "expr",   "from",  "bench"};

// A number for each configuration.
using ByConfiguration = std::vector<std::pair<std::int64_t, std::int64_t>>;

// An expression over CONFIG with these values, found by halving. `low` < `high`.
std::string chosen(const ByConfiguration& values, std::size_t low, std::size_t high) {
  const auto same = [&](const auto& one) { return one.second == values[low].second; };
  if (std::all_of(values.begin() + static_cast<std::ptrdiff_t>(low),
                  values.begin() + static_cast<std::ptrdiff_t>(high), same)) {
    return std::to_string(values[low].second);
  }
  const std::size_t middle = low + (high - low) / 2;
  return std::string(kTunable) + "<" + std::to_string(values[middle].first) + "?(" +
         chosen(values, low, middle) + "):(" + chosen(values, middle, high) + ")";
}

std::string expression_of(const ByConfiguration& values, const JsonNode& node) {
  std::string text = chosen(values, 0, values.size());
  if (text.size() > ExpressionLimits{}.max_length) {
    node.fail("the grids of " + std::to_string(values.size()) +
              " configurations differ from each other: fewer configurations are supported then");
  }
  return text;
}

// Sorted names and no spaces, the same text in every client: numbers with a fraction are refused.
Json canonical_value(const JsonNode& node) {
  if (node.is_boolean()) {
    return node.as_bool();
  }
  if (node.is_null()) {
    return nullptr;
  }
  if (node.is_array()) {
    Json array = Json::array();
    for (const JsonNode& element : node.elements()) {
      array.push_back(element.as_int64());
    }
    return array;
  }
  return node.is_string() ? Json(node.as_string()) : Json(node.as_int64());
}

Json read_options(const JsonNode& node) {
  Json options = Json::object();
  for (const JsonNode& member : node.members()) {
    options[member.key()] = canonical_value(member);
  }
  return options;
}

Json read_key(const JsonNode& node) {
  Json key = Json::array();
  for (const JsonNode& element : node.elements()) {
    key.push_back({element.at(std::size_t{0}).as_string(), canonical_value(element.at(1))});
  }
  return key;
}

std::string dumped(const Json& json) { return json.dump(-1, ' ', true); }

Digest read_ttir(const JsonNode& node) {
  const std::string text = node.as_string();
  const std::optional<Digest> digest = Digest::from_hex(text);
  if (!digest) {
    node.fail(quoted(text) + " is not a SHA-256 in hexadecimal digits");
  }
  return *digest;
}

std::int64_t read_warps(const JsonNode& options) { return options.at("num_warps").as_int64(1, 32); }

// What the configurations add up to while they are read.
struct Configurations {
  Json identity = Json::array();
  ByConfiguration threads;
  std::vector<ByConfiguration> grid{3};
};

void read_configuration(const JsonNode& node, KernelSpec& spec, Configurations& all) {
  node.expect_keys({"index", "ttir", "options", "grid", "values"});
  const std::int64_t index = node.at("index").as_int64(0, kMaxIndex);
  if (!all.threads.empty() && index <= all.threads.back().first) {
    node.at("index").fail("indices ascend: " + std::to_string(index) + " follows " +
                          std::to_string(all.threads.back().first));
  }
  const Digest ttir = read_ttir(node.at("ttir"));
  const Json options = read_options(node.at("options"));
  const std::vector<JsonNode> axes = elements_of(node.at("grid"), 3, "axes", 3);
  for (std::size_t axis = 0; axis < axes.size(); ++axis) {
    all.grid[axis].emplace_back(index, axes[axis].as_int64(0, std::int64_t{1} << 31));
  }
  all.threads.emplace_back(index, kWarp * read_warps(node.at("options")));
  all.identity.push_back({{"index", index}, {"options", options}, {"ttir", ttir.hex()}});
  spec.triton->variants.emplace(index, TritonVariant{ttir, dumped(options)});
}

std::string read_entry(const JsonNode& node) {
  std::string entry = node.as_nonempty_string();
  check_name_expression(entry, node.where());
  return entry;
}

Configurations read_code(const JsonNode& root, KernelSpec& spec) {
  const JsonNode triton = root.at("triton");
  triton.expect_keys({"version", "ptxas", "architecture", "entry", "key", "trailing_pointers"});
  const TritonCode& code = spec.triton.emplace(TritonCode{read_triton_target(triton), {}});
  Configurations all;
  for (const JsonNode& node :
       elements_of(root.at("configurations"), SpecLimits::kTunableValues, "configurations")) {
    read_configuration(node, spec, all);
  }
  all.identity = {{"architecture", code.architecture},
                  {"configurations", all.identity},
                  {"format", kFormat},
                  {"key", read_key(triton.at("key"))},
                  {"ptxas", code.ptxas},
                  {"trailing_pointers", triton.at("trailing_pointers").as_int64(0, kMaxTrailing)},
                  {"triton", code.version}};
  return all;
}

// What each argument is, without what differs between the calls of one key.
Json argument_identity(const JsonNode& node) {
  Json identity = Json::object();
  for (const JsonNode& member : node.members()) {
    if (std::ranges::find(kOfOneCall, member.key()) == kOfOneCall.end()) {
      identity[member.key()] = canonical_value(member);
    }
  }
  return identity;
}

Json arguments_identity(const JsonNode& arguments) {
  Json identity = Json::array();
  for (const JsonNode& node : arguments.members()) {
    identity.push_back({node.key(), argument_identity(node)});
  }
  return identity;
}

std::int64_t billionths(const BoundSpec& bound, const JsonNode& tolerance) {
  if (bound.kind != BoundSpec::Kind::Number || bound.factor > kMaxTolerance) {
    tolerance.fail("a Triton kernel's bounds are numbers up to " + std::to_string(kMaxTolerance));
  }
  return std::llround(bound.factor * 1e9);
}

Json tolerance_identity(const JsonNode& node, const KernelSpec& spec) {
  Json identity = Json::array();
  for (const Tolerance& one : spec.tolerances) {
    identity.push_back(
        {to_string(one.type), one.output, billionths(one.rtol, node), billionths(one.atol, node)});
  }
  return identity;
}

void check_name(const JsonNode& root, Json identity, const KernelSpec& spec) {
  identity["arguments"] = arguments_identity(root.at("arguments"));
  identity["tolerance"] = tolerance_identity(root.at("tolerance"), spec);
  const std::string& entry = spec.launches.front().entry;
  const std::string digits = Digest::of(dumped(identity)).hex().substr(0, kNameDigits);
  const std::string expected = entry.substr(0, SpecLimits::kNameLength - kNameDigits - 1) + "_" + digits;
  if (spec.name != expected) {
    root.at("name").fail("must be " + quoted(expected) +
                         ", which holds the digest of what is compiled and how results are compared");
  }
}

// Triton passes pointers of its own behind a kernel's parameters: to scratch memory, of which there is none.
void add_trailing_pointers(const JsonNode& node, KernelSpec& spec) {
  const std::int64_t count = node.as_int64(0, kMaxTrailing);
  for (std::int64_t i = 0; i < count; ++i) {
    ArgumentSpec argument;
    argument.name = "(trailing pointer " + std::to_string(i + 1) + ")";
    argument.buffer = false;
    argument.type = to_string(DType::I64);
    argument.expr = "0";
    spec.launches.front().arguments.push_back(argument.name);
    spec.arguments.push_back(std::move(argument));
  }
}

// The file lies in the definition's folder, where its name must not be another one's, as "hints".
void check_data(const JsonNode& arguments, const KernelSpec& spec) {
  for (const ArgumentSpec& argument : spec.arguments) {
    const std::string expected = argument.name + ".npy";
    if (argument.fill.kind == Fill::Kind::File && argument.fill.file != expected) {
      arguments.at(argument.name).at("fill").fail("a Triton kernel's file of data is " + quoted(expected));
    }
  }
}

void make_launch(const JsonNode& root, const Configurations& all, KernelSpec& spec) {
  const JsonNode node = root.at("configurations");
  LaunchSpec launch;
  // Without the configuration: equal texts with equal options are one artifact, whose entry has one name.
  launch.entry = read_entry(root.at("triton").at("entry"));
  for (const ArgumentSpec& argument : spec.arguments) {
    launch.arguments.push_back(argument.name);
  }
  for (const ByConfiguration& axis : all.grid) {
    launch.grid.push_back(expression_of(axis, node));
  }
  launch.block = {expression_of(all.threads, node)};
  spec.launches.push_back(std::move(launch));
}

}  // namespace

void read_triton_document(const JsonNode& root, KernelSpec& spec) {
  root.expect_keys({"$schema", "name", "language", "description", "triton", "configurations", "problem",
                    "arguments", "tolerance"});
  root.string_or("$schema", "");
  root.string_or("description", "");
  read_problem(root, spec);
  if (const auto bucket = root.at("problem").find("bucket")) {
    bucket->fail("a Triton kernel has no buckets: its grids are those of one call");
  }
  const Configurations all = read_code(root, spec);
  Tunable& tunable = spec.tunables.emplace_back(Tunable{std::string(kTunable), {}});
  for (const auto& [index, threads] : all.threads) {
    tunable.values.push_back(index);
    // Tried in order: only the compiler tells how much shared memory each of them takes.
    spec.defaults.push_back({{{tunable.name, index}}});
  }
  const SpecScopes scopes = make_scopes(spec);
  read_arguments(root, scopes, spec);
  check_data(root.at("arguments"), spec);
  make_launch(root, all, spec);
  read_tolerance(root, scopes, spec);
  check_arguments(root, spec);
  check_tolerances(root, spec);
  check_name(root, all.identity, spec);
  add_trailing_pointers(root.at("triton").at("trailing_pointers"), spec);
}

const TritonVariant& KernelSpec::triton_variant(const Configuration& configuration) const {
  return triton->variants.at(configuration.value(kTunable).value());
}

}  // namespace cubind
