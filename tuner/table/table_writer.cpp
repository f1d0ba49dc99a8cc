#include <algorithm>
#include <tuple>

#include "base/json.hpp"
#include "plan/facts/fact_json.hpp"
#include "plan/problem_json.hpp"
#include "tuner/spec/wire.hpp"
#include "tuner/table/table.hpp"

namespace cubind {
namespace {

OrderedJson to_json(const TableDevice& device) {
  OrderedJson json = {{"class", device.device_class.hex()}, {"label", device.label}};
  add_device_facts(json["facts"], device.facts);
  return json;
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

template <std::derived_from<google::protobuf::Message> Fact>
OrderedJson to_json(const std::vector<Fact>& facts) {
  OrderedJson list = OrderedJson::array();
  for (const Fact& fact : facts) {
    list.push_back(cubind::to_json(fact));
  }
  return list;
}

OrderedJson to_json(const TableRecord& record) {
  const Timing& timing = record.timing;
  OrderedJson json = to_json(record.context, timing.timer(), timing.tick_us());
  json.update(OrderedJson{{"interface", record.interface.hex()},
                          {"numerics", record.numerics},
                          {"namespace", record.name_space}});
  add_fields(json, timing, 1, Timing::kContendedFieldNumber);
  json["provisional"] = record.provisional;
  add_fields(json, timing, Timing::kContendedFieldNumber + 1, Timing::kTimerFieldNumber - 1);
  json["evidence"] = to_string(record.evidence);
  json["driver_cuda"] = record.driver_cuda;
  add_fields(json, timing, Timing::kMeasuredAtFieldNumber);
  json["verification"] = cubind::to_json(record.verification);
  if (!record.over_library.empty()) {
    json["over_library"] = to_json(record.over_library);
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
  if (!trial.header.detail().empty()) {
    json["detail"] = trial.header.detail();
  }
  add_fields(json, trial.header, kFirstTrialFact);
  json["resources"] = to_json(trial.resources);
  json["screening"] = to_json(trial.screening);
  json["finals"] = to_json(trial.finals);
  json["verifications"] = to_json(trial.verifications);
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
