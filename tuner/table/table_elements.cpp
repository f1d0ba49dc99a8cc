#include "tuner/table/table_elements.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <initializer_list>
#include <optional>

#include "base/clock.hpp"
#include "base/text.hpp"
#include "plan/answer_wire.hpp"
#include "plan/facts/fact_json.hpp"
#include "plan/facts/library_comparison.hpp"
#include "plan/facts/value_check.hpp"
#include "tuner/spec/wire.hpp"
#include "tuner/table/table_parts.hpp"

namespace cubind {
namespace {

constexpr std::size_t kMaxSymbolBytes = 16384;  // a mangled template
constexpr std::size_t kMaxNames = 64;

// Fields of facts that a table writes otherwise or not at all.
constexpr std::array<std::string_view, 3> kUnwritten{"cc_major", "cc_minor", "fault_count"};

// Reads the plain fields of a fact. Refuses members that are neither one of these nor one of `others`, and
// what lacks a `required` one.
void read_fact(const JsonNode& node, google::protobuf::Message& fact,
               std::initializer_list<std::string_view> others,
               std::initializer_list<std::string_view> required) {
  std::vector<std::string> names = read_fields(node, fact);
  std::erase_if(names,
                [](const auto& name) { return std::ranges::find(kUnwritten, name) != kUnwritten.end(); });
  names.insert(names.end(), others.begin(), others.end());
  node.expect_keys(names);
  for (const std::string_view name : required) {
    node.at(name);
  }
}

std::uint32_t count_or_zero(const JsonNode& node, std::string_view key) {
  return static_cast<std::uint32_t>(node.contains(key) ? node.at(key).as_int64(0, UINT32_MAX) : 0);
}

double time_or_zero(const JsonNode& node, std::string_view key) {
  const double time_us = node.number_or(key, 0);
  check_number(time_us, kMaxTimeUs, node.where() + "/" + std::string(key));
  return time_us;
}

std::string read_text(const JsonNode& node, std::size_t max = kMaxNameBytes) {
  std::string text = node.as_string();
  check_text(text, node.where(), max);
  return text;
}

std::string read_name(const JsonNode& node) {
  node.as_nonempty_string();
  return read_text(node);
}

Outcome read_outcome(const JsonNode& node, std::initializer_list<std::string_view> outcomes) {
  node.as_choice(outcomes);
  return *parse_outcome(node.as_string());
}

std::string text_or_empty(const JsonNode& node, std::string_view key) {
  return node.contains(key) ? read_text(node.at(key)) : "";
}

std::vector<JsonNode> named_members(const JsonNode& node) {
  std::vector<JsonNode> members = node.members();
  if (members.size() > kMaxNames) {
    node.fail("has " + std::to_string(members.size()) + " members, at most " + std::to_string(kMaxNames) +
              " are taken");
  }
  for (const JsonNode& member : members) {
    if (member.key().empty()) {
      node.fail("has a member without a name");
    }
    check_text(member.key(), node.where());
  }
  return members;
}

std::vector<NamedValue> read_values(const JsonNode& node) {
  std::vector<NamedValue> values;
  for (const JsonNode& member : named_members(node)) {
    values.push_back({member.key(), member.as_int64()});
  }
  return values;
}

Problem read_problem(const JsonNode& node) {
  node.expect_keys({"dims", "types", "flags", "scenario"});
  Problem problem;
  for (const JsonNode& member : named_members(node.at("dims"))) {
    problem.dims.push_back({member.key(), member.as_int64(0, kMaxDim)});
  }
  if (problem.dims.empty()) {
    node.at("dims").fail("is empty, a problem has at least one dim");
  }
  for (const JsonNode& member : named_members(node.at("types"))) {
    const std::optional<DType> type = parse_dtype(member.as_string());
    if (!type) {
      member.fail(quoted(member.as_string()) + " is not a type" + dtype_suggestion(member.as_string()));
    }
    problem.types.push_back({member.key(), *type});
  }
  if (node.contains("flags")) {
    problem.flags = read_values(node.at("flags"));
  }
  problem.scenario = text_or_empty(node, "scenario");
  return problem;
}

DeviceFacts read_facts(const JsonNode& node) {
  DeviceFacts facts;
  read_fact(
      node, facts, {"compute_capability"},
      {"pci_device_id", "sm_count", "l2_bytes", "shared_optin_bytes", "memory_bytes", "memory_bus_bits"});
  read_text(node.at("name"));
  text_or_empty(node, "mig_profile");
  text_or_empty(node, "replay_table");
  const std::string capability = node.at("compute_capability").as_string();
  const char* const end = capability.data() + capability.size();
  std::uint32_t major = 0, minor = 0;
  const auto [dot, no_major] = std::from_chars(capability.data(), end, major);
  const auto [last, no_minor] = std::from_chars(std::min(dot + 1, end), end, minor);
  if (no_major != std::errc() || *dot != '.' || no_minor != std::errc() || last != end) {
    node.at("compute_capability").fail("expected MAJOR.MINOR, such as 9.0");
  }
  facts.set_cc_major(major);
  facts.set_cc_minor(minor);
  return facts;
}

TableContext read_context(const JsonNode& node) {
  TableContext context;
  context.kernel = read_name(node.at("kernel"));
  context.problem = read_problem(node.at("problem"));
  context.device_class = read_digest(node.at("device"));
  context.policy = read_text(node.at("policy"));
  policy_from_table(context.policy, node.at("policy").where());
  context.configuration.values = read_values(node.at("configuration"));
  context.trial = read_digest(node.at("trial"));
  context.driver = text_or_empty(node, "driver");
  if (const auto text = node.find("architecture")) {
    context.architecture = text->as_string();
    if (!compute_capability(context.architecture)) {
      text->fail("expected an architecture such as sm_90 or sm_90a");
    }
  }
  if (node.contains("artifact")) {
    context.artifact = read_digest(node.at("artifact"));
  }
  if (node.contains("toolchain")) {
    const JsonNode toolchain = node.at("toolchain");
    toolchain.expect_keys({"name", "nvrtc", "builtins", "headers"});
    context.toolchain = {read_text(toolchain.at("name")), read_digest(toolchain.at("nvrtc")),
                         read_digest(toolchain.at("builtins")), read_digest(toolchain.at("headers"))};
  }
  return context;
}

// A correct result is within its tolerance: an excess of 1 is at its edge.
void check_excess(const JsonNode& node, double excess, bool is_correct) {
  if (is_correct && excess > 1) {
    node.at("worst_excess").fail("is above 1: the result is outside of its tolerance and not correct");
  }
}

VerificationSummary read_summary(const JsonNode& node) {
  VerificationSummary verification;
  read_fact(node, verification, {"digest", "problems"}, {"verified"});
  node.at("reference").as_choice({"kernel", "expected", "default"});
  verification.set_digest(bytes_of(read_digest(node.at("digest"))));
  check_excess(node, verification.worst_excess(), verification.verified());
  if (node.contains("problems")) {
    for (const JsonNode& problem : node.at("problems").elements()) {
      to_wire(read_problem(problem), *verification.add_problems());
    }
  }
  return verification;
}

void check_timing(const JsonNode& node, const Timing& timing) {
  node.at("samples").as_int64(1, UINT32_MAX);
  if (timing.low_us() > timing.median_us() || timing.median_us() > timing.high_us()) {
    node.at("time_us").fail("is not between time_low_us and time_high_us");
  }
  if (node.contains("timer")) {
    check_text(timing.timer(), node.at("timer").where());
  }
  if (!is_iso8601_utc(timing.measured_at())) {
    node.at("measured_at")
        .fail("expected a time in UTC such as 2026-01-31T12:00:00Z; there is no such day or time");
  }
}

template <typename Fact>
std::vector<Fact> read_list(const JsonNode& trial, std::string_view name, std::string_view required) {
  std::vector<Fact> facts;
  for (const JsonNode& element : trial.contains(name) ? trial.at(name).elements() : std::vector<JsonNode>()) {
    read_fact(element, facts.emplace_back(), {}, {required});
  }
  return facts;
}

std::vector<EntryResources> read_resources(const JsonNode& trial) {
  auto resources = read_list<EntryResources>(trial, "resources", "entry_symbol");
  for (std::size_t i = 0; i < resources.size(); ++i) {
    read_text(trial.at("resources").at(i).at("entry_symbol"), kMaxSymbolBytes);
  }
  return resources;
}

VerificationResult read_verification(const JsonNode& node) {
  VerificationResult result;
  read_fact(node, result, {"problem", "outcome"}, {});
  to_wire(read_problem(node.at("problem")), *result.mutable_problem());
  result.set_outcome(
      to_wire(read_outcome(node.at("outcome"), {"correct", "launch", "runtime", "timeout", "wrong_result"})));
  check_excess(node, result.worst_excess(), result.outcome() == v1::CORRECT);
  return result;
}

std::vector<LibraryComparison> read_comparisons(const JsonNode& node) {
  if (node.size() > kMaxLibraries) {
    node.fail("has " + std::to_string(node.size()) + " libraries, at most " + std::to_string(kMaxLibraries) +
              " are kept");
  }
  std::vector<LibraryComparison> comparisons;
  for (const JsonNode& element : node.elements()) {
    LibraryComparison comparison;
    read_fact(element, comparison, {}, {"library", "gain", "gain_low", "gain_high", "samples"});
    if (const auto fault = fault_of(comparison)) {
      element.at(fault->member).fail(fault->cause);
    }
    const auto has_library = [&](const auto& other) { return other.library() == comparison.library(); };
    if (std::ranges::any_of(comparisons, has_library)) {
      element.at("library").fail("the record has this library twice");
    }
    put_comparison(comparisons, std::move(comparison));
  }
  return comparisons;
}

}  // namespace

Digest read_digest(const JsonNode& node) {
  const std::optional<Digest> digest = Digest::from_hex(node.as_string());
  if (!digest) {
    node.fail("expected 64 lower-case hex digits");
  }
  return *digest;
}

TableDevice read_device(const JsonNode& node) {
  node.expect_keys({"class", "label", "facts"});
  TableDevice device{read_digest(node.at("class")), read_name(node.at("label")),
                     read_facts(node.at("facts"))};
  const Digest derived = derive_device_class(device.facts, node.where() + "/facts").digest;
  if (derived != device.device_class) {
    node.at("class").fail("the facts give the class " + derived.hex());
  }
  return device;
}

TableRecord read_record(const JsonNode& node) {
  TableRecord record;
  read_fact(node, record.timing,
            {"kernel", "problem", "device", "policy", "configuration", "trial", "driver", "artifact",
             "architecture", "toolchain", "interface", "numerics", "namespace", "provisional", "evidence",
             "driver_cuda", "verification", "over_library"},
            {"time_us", "time_low_us", "time_high_us", "measured_at", "driver", "artifact", "architecture",
             "toolchain"});
  check_timing(node, record.timing);
  record.context = read_context(node);
  record.interface = read_digest(node.at("interface"));
  record.numerics = read_text(node.at("numerics"));
  numerics_from_table(record.numerics, node.at("numerics").where());
  record.name_space = text_or_empty(node, "namespace");
  node.at("evidence").as_choice({"measured", "imported", "shipped", "replayed"});
  record.evidence = *parse_evidence(node.at("evidence").as_string());
  record.provisional = node.bool_or("provisional", false);
  record.driver_cuda = count_or_zero(node, "driver_cuda");
  record.verification = read_summary(node.at("verification"));
  if (node.contains("over_library")) {
    record.over_library = read_comparisons(node.at("over_library"));
  }
  return record;
}

TableTrial read_trial(const JsonNode& node) {
  TableTrial trial;
  read_fact(node, trial.header,
            {"kernel",   "problem",      "device",    "policy",    "configuration", "trial",        "driver",
             "artifact", "architecture", "toolchain", "timer",     "tick_us",       "time_us",      "samples",
             "outcome",  "measured_as",  "resources", "screening", "finals",        "verifications"},
            {});
  trial.context = read_context(node);
  trial.timer = text_or_empty(node, "timer");
  trial.tick_us = time_or_zero(node, "tick_us");
  trial.time_us = time_or_zero(node, "time_us");
  trial.samples = count_or_zero(node, "samples");
  trial.outcome = read_outcome(node.at("outcome"), {"correct", "constraint", "compile", "launch", "runtime",
                                                    "timeout", "wrong_result", "unverified"});
  if (node.contains("measured_as")) {
    trial.measured_as = read_digest(node.at("measured_as"));
  }
  trial.resources = read_resources(node);
  trial.screening = read_list<SampleBlock>(node, "screening", "samples_us");
  trial.finals = read_list<SampleBlock>(node, "finals", "samples_us");
  if (!node.contains("verifications")) {
    return trial;
  }
  for (const JsonNode& check : node.at("verifications").elements()) {
    trial.verifications.push_back(read_verification(check));
  }
  return trial;
}

Policy policy_from_table(const std::string& text, const std::string& where) {
  if (const std::optional<Policy> policy = parse_policy(text)) {
    return *policy;
  }
  throw Error(
      ErrorCode::InvalidArgument, where,
      "'" + text + "' is not a policy: cold/METHOD or warm, a comma, stream or graph, such as cold/3,stream");
}

Numerics numerics_from_table(const std::string& text, const std::string& where) {
  if (const std::optional<Numerics> numerics = parse_numerics(text)) {
    return *numerics;
  }
  throw Error(ErrorCode::InvalidArgument, where,
              "'" + text + "' is not tolerance, reproducible or invariant:DIM");
}

}  // namespace cubind
