#include "tuner/table/table_elements.hpp"

#include <algorithm>
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

std::uint32_t count_or_zero(const JsonNode& node, std::string_view key) {
  return static_cast<std::uint32_t>(node.contains(key) ? node.at(key).as_int64(0, UINT32_MAX) : 0);
}

std::string read_text(const JsonNode& node, std::size_t max = kMaxNameBytes) {
  std::string text = node.as_string();
  check_text(text, node.where(), max);
  return text;
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
  read_fields(node, facts);
  check_text(facts.name(), node.at("name").where());
  text_or_empty(node, "mig_profile");
  text_or_empty(node, "replay_table");
  const std::string capability = node.at("compute_capability").as_string();
  if (capability.size() > 6) {
    node.at("compute_capability").fail("expected MAJOR.MINOR, such as 9.0");
  }
  facts.set_cc_major(static_cast<std::uint32_t>(std::stoul(capability)));
  facts.set_cc_minor(static_cast<std::uint32_t>(std::stoul(capability.substr(capability.find('.') + 1))));
  return facts;
}

TableContext read_context(const JsonNode& node) {
  TableContext context;
  context.kernel = read_text(node.at("kernel"));
  context.problem = read_problem(node.at("problem"));
  context.device_class = read_digest(node.at("device"));
  context.policy = read_text(node.at("policy"));
  policy_from_table(context.policy, node.at("policy").where());
  context.configuration.values = read_values(node.at("configuration"));
  context.trial = read_digest(node.at("trial"));
  context.driver = text_or_empty(node, "driver");
  context.architecture = text_or_empty(node, "architecture");
  if (node.contains("artifact")) {
    context.artifact = read_digest(node.at("artifact"));
  }
  if (node.contains("toolchain")) {
    const JsonNode toolchain = node.at("toolchain");
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
  read_fields(node, verification);
  verification.set_digest(bytes_of(read_digest(node.at("digest"))));
  check_excess(node, verification.worst_excess(), verification.verified());
  if (node.contains("problems")) {
    for (const JsonNode& problem : node.at("problems").elements()) {
      to_wire(read_problem(problem), *verification.add_problems());
    }
  }
  return verification;
}

Timing read_timing(const JsonNode& node) {
  Timing timing;
  read_fields(node, timing);
  if (timing.low_us() > timing.median_us() || timing.median_us() > timing.high_us()) {
    node.at("time_us").fail("is not between time_low_us and time_high_us");
  }
  if (node.contains("timer")) {
    check_text(timing.timer(), node.at("timer").where());
  }
  if (!is_iso8601_utc(timing.measured_at())) {
    node.at("measured_at").fail("there is no such day or time");
  }
  return timing;
}

template <typename Fact>
std::vector<Fact> read_list(const JsonNode& trial, std::string_view name) {
  std::vector<Fact> facts;
  for (const JsonNode& element : trial.contains(name) ? trial.at(name).elements() : std::vector<JsonNode>()) {
    read_fields(element, facts.emplace_back());
  }
  return facts;
}

std::vector<EntryResources> read_resources(const JsonNode& trial) {
  auto resources = read_list<EntryResources>(trial, "resources");
  for (std::size_t i = 0; i < resources.size(); ++i) {
    read_text(trial.at("resources").at(i).at("entry_symbol"), kMaxSymbolBytes);
  }
  return resources;
}

VerificationResult read_verification(const JsonNode& node) {
  VerificationResult result;
  read_fields(node, result);
  to_wire(read_problem(node.at("problem")), *result.mutable_problem());
  result.set_outcome(to_wire(*parse_outcome(node.at("outcome").as_string())));
  check_excess(node, result.worst_excess(), result.outcome() == v1::CORRECT);
  return result;
}

std::vector<LibraryComparison> read_comparisons(const JsonNode& node) {
  std::vector<LibraryComparison> comparisons;
  for (const JsonNode& element : node.elements()) {
    LibraryComparison comparison;
    read_fields(element, comparison);
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
  // The schema has already checked the pattern.
  const std::optional<Digest> digest = Digest::from_hex(node.as_string());
  if (!digest) {
    node.fail("expected 64 lower-case hex digits");
  }
  return *digest;
}

TableDevice read_device(const JsonNode& node) {
  TableDevice device{read_digest(node.at("class")), read_text(node.at("label")),
                     read_facts(node.at("facts"))};
  const Digest derived = derive_device_class(device.facts, node.where() + "/facts").digest;
  if (derived != device.device_class) {
    node.at("class").fail("the facts give the class " + derived.hex());
  }
  return device;
}

TableRecord read_record(const JsonNode& node) {
  TableRecord record;
  record.context = read_context(node);
  record.interface = read_digest(node.at("interface"));
  record.numerics = read_text(node.at("numerics"));
  numerics_from_table(record.numerics, node.at("numerics").where());
  record.name_space = text_or_empty(node, "namespace");
  record.evidence = *parse_evidence(node.at("evidence").as_string());
  record.provisional = node.bool_or("provisional", false);
  record.driver_cuda = count_or_zero(node, "driver_cuda");
  record.timing = read_timing(node);
  record.verification = read_summary(node.at("verification"));
  if (node.contains("over_library")) {
    record.over_library = read_comparisons(node.at("over_library"));
  }
  return record;
}

TableTrial read_trial(const JsonNode& node) {
  TableTrial trial;
  trial.context = read_context(node);
  trial.timer = text_or_empty(node, "timer");
  trial.tick_us = node.number_or("tick_us", 0);
  trial.time_us = node.number_or("time_us", 0);
  trial.samples = static_cast<std::uint32_t>(node.int64_or("samples", 0));
  trial.outcome = *parse_outcome(node.at("outcome").as_string());
  read_fields(node, trial.header);
  if (node.contains("measured_as")) {
    trial.measured_as = read_digest(node.at("measured_as"));
  }
  trial.resources = read_resources(node);
  trial.screening = read_list<SampleBlock>(node, "screening");
  trial.finals = read_list<SampleBlock>(node, "finals");
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
