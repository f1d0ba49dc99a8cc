#include <algorithm>
#include <tuple>

#include "base/json.hpp"
#include "tuner/plan/evidence_json.hpp"
#include "tuner/plan/problem_json.hpp"
#include "tuner/table/table.hpp"

namespace cubind {
namespace {

OrderedJson to_json(const DeviceFacts& facts) {
  return {{"name", facts.name},
          {"pci_device_id", facts.pci_device_id},
          {"compute_capability", std::to_string(facts.cc_major) + "." + std::to_string(facts.cc_minor)},
          {"sm_count", facts.sm_count},
          {"l2_bytes", facts.l2_bytes},
          {"shared_optin_bytes", facts.shared_optin_bytes},
          {"memory_bytes", facts.memory_bytes},
          {"memory_bus_bits", facts.memory_bus_bits},
          {"mig_profile", facts.mig_profile},
          {"power_limit_mw", facts.power_limit_mw},
          {"max_sm_mhz", facts.max_sm_mhz},
          {"replay_table", facts.replay_table}};
}

OrderedJson to_json(const TableDevice& device) {
  return {{"class", device.device_class.hex()}, {"label", device.label}, {"facts", to_json(device.facts)}};
}

OrderedJson to_json(const ToolchainIdentity& toolchain) {
  return {{"name", toolchain.name},
          {"nvrtc", toolchain.nvrtc.hex()},
          {"builtins", toolchain.builtins.hex()},
          {"headers", toolchain.headers.hex()}};
}

// The fields that records and trials share, in the order in which they print.
OrderedJson to_json(const TableContext& context, const std::string& timer, double tick_us) {
  OrderedJson json = {{"kernel", context.kernel},
                      {"problem", to_json(context.problem)},
                      {"device", context.device_class.hex()},
                      {"policy", context.policy},
                      {"configuration", to_json(context.configuration.values)},
                      {"trial", context.trial.hex()},
                      {"driver", context.driver}};
  if (!context.artifact.is_zero()) {
    json["artifact"] = context.artifact.hex();
    json["architecture"] = context.architecture;
    json["toolchain"] = to_json(context.toolchain);
  }
  if (!timer.empty()) {
    json["timer"] = timer;
    json["tick_us"] = tick_us;
  }
  return json;
}

OrderedJson to_json(const VerificationSummary& verification) {
  OrderedJson problems = OrderedJson::array();
  for (const Problem& problem : verification.problems) {
    problems.push_back(to_json(problem));
  }
  return {{"verified", verification.verified},   {"digest", verification.digest.hex()},
          {"reference", verification.reference}, {"worst_excess", verification.worst_excess},
          {"same_bits", verification.same_bits}, {"after_timing", verification.after_timing},
          {"problems", std::move(problems)}};
}

OrderedJson to_json(const TableRecord& record) {
  const Timing& timing = record.timing;
  OrderedJson json = to_json(record.context, timing.timer, timing.tick_us);
  json.update(OrderedJson{{"interface", record.interface.hex()},
                          {"numerics", record.numerics},
                          {"namespace", record.name_space}});
  add_fields(json, timing, kTimingFields);
  json.update(OrderedJson{{"provisional", record.provisional},
                          {"gain_over_default", timing.gain_over_default},
                          {"evidence", to_string(record.evidence)},
                          {"driver_cuda", record.driver_cuda},
                          {"measured_at", timing.measured_at},
                          {"verification", to_json(record.verification)}});
  if (!record.over_library.empty()) {
    json["over_library"] = OrderedJson::array();
    for (const LibraryComparison& comparison : record.over_library) {
      json["over_library"].push_back(to_json(comparison));
    }
  }
  return json;
}

OrderedJson to_json(const std::vector<SampleBlock>& blocks) {
  OrderedJson json = OrderedJson::array();
  for (const SampleBlock& block : blocks) {
    OrderedJson entry = {{"samples_us", block.samples_us}};
    add_fields(entry, block.conditions, kConditionFields);
    if (block.judged_against_us > 0) {
      entry["judged_against_us"] = block.judged_against_us;
    }
    json.push_back(std::move(entry));
  }
  return json;
}

OrderedJson to_json(const TableTrial& trial) {
  OrderedJson json = to_json(trial.context, trial.timer, trial.tick_us);
  if (trial.samples > 0) {
    json["time_us"] = trial.time_us;
    json["samples"] = trial.samples;
  }
  json["outcome"] = to_string(trial.outcome);
  if (trial.measured_as) {
    json["measured_as"] = trial.measured_as->hex();
  }
  if (!trial.detail.empty()) {
    json["detail"] = trial.detail;
  }
  json["resources"] = OrderedJson::array();
  for (const EntryResources& resources : trial.resources) {
    json["resources"].push_back(to_json(resources));
  }
  json["screening"] = to_json(trial.screening);
  json["finals"] = to_json(trial.finals);
  json["verifications"] = OrderedJson::array();
  for (const VerificationResult& check : trial.verifications) {
    json["verifications"].push_back({{"problem", to_json(check.problem)},
                                     {"after_timing", check.after_timing},
                                     {"outcome", to_string(check.outcome)},
                                     {"worst_excess", check.worst_excess},
                                     {"same_bits", check.same_bits}});
  }
  return json;
}

// Numbers sort by value, so that N=128 comes before N=1024.
auto problem_order(const Problem& problem) {
  std::vector<std::int64_t> sizes;
  std::string names;
  for (const NamedValue& dim : problem.dims) {
    sizes.push_back(dim.value);
    names += dim.name + ' ';
  }
  return std::tuple(std::move(names), std::move(sizes), to_string(problem));
}

auto record_order(const TableRecord& record) {
  const TableContext& context = record.context;
  return std::tuple(context.kernel, context.device_class, problem_order(context.problem), context.policy,
                    record.numerics, record.name_space, context.driver, context.toolchain.name, context.trial,
                    record.interface);
}

auto trial_order(const TableTrial& trial) {
  const TableContext& context = trial.context;
  std::vector<std::int64_t> values;
  for (const NamedValue& value : context.configuration.values) {
    values.push_back(value.value);
  }
  return std::tuple(context.kernel, context.device_class, problem_order(context.problem), context.policy,
                    std::move(values), context.driver, context.trial);
}

// A key is made of many strings: each key is made once. Equal keys print the same.
template <typename Row, typename Order>
void sort_by(std::vector<Row>& rows, const Order& order) {
  std::vector<std::pair<decltype(order(rows[0])), std::size_t>> keys;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    keys.emplace_back(order(rows[i]), i);
  }
  std::ranges::sort(keys);
  std::vector<Row> sorted;
  for (const auto& [key, index] : keys) {
    sorted.push_back(std::move(rows[index]));
  }
  rows = std::move(sorted);
}

template <typename Element>
void print_lines(std::string& text, std::string_view name, const std::vector<Element>& elements,
                 std::string_view end) {
  text.append("\"").append(name).append("\": [");
  std::string_view separator = "\n";
  for (const Element& element : elements) {
    text.append(separator).append(canonical_bytes(element));
    separator = ",\n";
  }
  text.append(elements.empty() ? "]" : "\n]").append(end);
}

}  // namespace

void sort_table(Table& table) {
  sort_by(table.devices,
          [](const TableDevice& device) { return std::tuple(device.label, device.device_class); });
  sort_by(table.records, record_order);
  sort_by(table.trials, trial_order);
}

bool prints_before(const TableRecord& a, const TableRecord& b) { return record_order(a) < record_order(b); }

std::string canonical_bytes(const TableDevice& device) { return to_json(device).dump(); }
std::string canonical_bytes(const TableRecord& record) { return to_json(record).dump(); }
std::string canonical_bytes(const TableTrial& trial) { return to_json(trial).dump(); }

std::string print_table(Table table) {
  sort_table(table);
  std::string text = "{\"format\": \"cubind-table\", \"version\": 1,\n";
  print_lines(text, "devices", table.devices, ",\n");
  print_lines(text, "records", table.records, table.trials.empty() ? "\n" : ",\n");
  if (!table.trials.empty()) {
    print_lines(text, "trials", table.trials, "\n");
  }
  return text + "}\n";
}

Digest table_digest(const Table& table) { return Digest::of(print_table(table)); }

}  // namespace cubind
