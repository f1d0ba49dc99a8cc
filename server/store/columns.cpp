#include "server/store/columns.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <span>
#include <utility>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "tuner/plan/evidence_json.hpp"
#include "tuner/plan/library_comparison.hpp"
#include "tuner/plan/problem_json.hpp"

namespace cubind::store {
namespace {

static_assert(std::endian::native == std::endian::little, "samples are stored as little-endian doubles");

[[noreturn]] void damaged(std::string_view what, std::string_view text) {
  throw Error(ErrorCode::DataLoss, "", "does not hold " + std::string(what) + ": " + quoted(text));
}

/// Errors of JSON and its conversions become DataLoss: the store wrote this text itself.
template <typename Read>
auto read_json(const std::string& text, std::string_view what, Read read) {
  try {
    return read(OrderedJson::parse(text));
  } catch (const nlohmann::json::exception&) {
    damaged(what, text);
  }
}

template <typename Value>
Value known(const std::optional<Value>& value, std::string_view what, std::string_view text) {
  if (!value) {
    damaged(what, text);
  }
  return *value;
}

template <typename Enum, std::size_t size>
std::string_view name_of(const std::array<std::pair<Enum, std::string_view>, size>& names, Enum value) {
  for (const auto& [named, name] : names) {
    if (named == value) {
      return name;
    }
  }
  throw Error(ErrorCode::Internal, "store", "a value of an enumeration has no name");
}

template <typename Enum, std::size_t size>
Enum value_of(const std::array<std::pair<Enum, std::string_view>, size>& names, std::string_view name) {
  for (const auto& [value, value_name] : names) {
    if (value_name == name) {
      return value;
    }
  }
  damaged("a known name", name);
}

constexpr std::array<std::pair<Origin, std::string_view>, 2> kOrigins{
    {{Origin::Worker, "worker"}, {Origin::Import, "import"}}};

constexpr std::array<std::pair<JobState, std::string_view>, 7> kStates{
    {{JobState::Queued, "queued"},
     {JobState::Running, "running"},
     {JobState::NoDevice, "no_device"},
     {JobState::WaitingForIdleGpu, "waiting_for_idle_gpu"},
     {JobState::Done, "done"},
     {JobState::Failed, "failed"},
     {JobState::Cancelled, "cancelled"}}};

constexpr std::array<std::pair<JobKind, std::string_view>, 2> kKinds{
    {{JobKind::Tune, "tune"}, {JobKind::CompileWinner, "compile_winner"}}};

std::vector<NamedValue> values_from(const OrderedJson& object) {
  std::vector<NamedValue> values;
  for (const auto& [name, value] : object.get_ref<const OrderedJson::object_t&>()) {
    values.push_back({name, value.get<std::int64_t>()});
  }
  return values;
}

Problem problem_from(const OrderedJson& json) {
  Problem problem;
  problem.dims = values_from(json.at("dims"));
  for (const auto& [name, spelling] : json.at("types").get_ref<const OrderedJson::object_t&>()) {
    const auto text = spelling.get<std::string>();
    problem.types.push_back({name, known(parse_dtype(text), "a type", text)});
  }
  problem.flags = values_from(json.at("flags"));
  problem.scenario = json.at("scenario").get<std::string>();
  return problem;
}

template <typename Item, typename Write>
std::string write_list(const std::vector<Item>& items, Write write) {
  OrderedJson list = OrderedJson::array();
  for (const Item& item : items) {
    list.push_back(write(item));
  }
  return list.dump();
}

template <typename Item, typename Read>
std::vector<Item> read_list(const std::string& text, std::string_view what, Read read) {
  return read_json(text, what, [&](const OrderedJson& list) {
    std::vector<Item> items;
    for (const OrderedJson& item : list.get_ref<const OrderedJson::array_t&>()) {
      items.push_back(read(item));
    }
    return items;
  });
}

}  // namespace

std::string write_problem(const Problem& problem) { return to_json(problem).dump(); }

Problem read_problem(const std::string& text) { return read_json(text, "a problem", problem_from); }

std::string write_problems(const std::vector<Problem>& problems) {
  return write_list(problems, [](const Problem& problem) { return to_json(problem); });
}

std::vector<Problem> read_problems(const std::string& text) {
  return read_list<Problem>(text, "a list of problems", problem_from);
}

std::string write_configuration(const Configuration& configuration) {
  return to_json(configuration.values).dump();
}

Configuration read_configuration(const std::string& text) {
  return read_json(text, "a configuration",
                   [](const OrderedJson& json) { return Configuration{values_from(json)}; });
}

std::string write_configurations(const std::vector<Configuration>& configurations) {
  return write_list(configurations, [](const Configuration& item) { return to_json(item.values); });
}

std::vector<Configuration> read_configurations(const std::string& text) {
  return read_list<Configuration>(text, "a list of configurations",
                                  [](const OrderedJson& item) { return Configuration{values_from(item)}; });
}

std::string write_strings(const std::vector<std::string>& strings) { return OrderedJson(strings).dump(); }

std::vector<std::string> read_strings(const std::string& text) {
  return read_list<std::string>(text, "a list of strings",
                                [](const OrderedJson& item) { return item.get<std::string>(); });
}

std::string write_resources(const std::vector<EntryResources>& resources) {
  return write_list(resources, [](const EntryResources& entry) { return to_json(entry); });
}

std::vector<EntryResources> read_resources(const std::string& text) {
  return read_list<EntryResources>(text, "a list of resources", [](const OrderedJson& item) {
    EntryResources entry;
    for_each_field(kResourceFields, [&](const auto& field) {
      const std::string name(field.name);
      if (field.printed == Printed::Always || item.contains(name)) {
        item.at(name).get_to(entry.*field.member);
      }
    });
    return entry;
  });
}

std::optional<std::string> write_comparisons(const std::vector<LibraryComparison>& comparisons) {
  if (comparisons.empty()) {
    return std::nullopt;
  }
  return write_list(comparisons, [](const LibraryComparison& item) { return to_json(item); });
}

std::vector<LibraryComparison> read_comparisons(const std::string& text) {
  const OrderedJson list = OrderedJson::parse(text, nullptr, /*allow_exceptions=*/false);
  std::vector<LibraryComparison> comparisons;
  for (const OrderedJson& item : list.is_array() ? list : OrderedJson::array()) {
    try {
      LibraryComparison comparison;
      for_each_field(kComparisonFields, [&](const auto& field) {
        item.at(std::string(field.name)).get_to(comparison.*field.member);
      });
      if (!fault_of(comparison)) {
        put_comparison(comparisons, std::move(comparison));
      }
    } catch (const nlohmann::json::exception&) {
      continue;
    }
  }
  return comparisons;
}

std::string write_outcomes(const std::vector<OutcomeCount>& outcomes) {
  OrderedJson object = OrderedJson::object();
  for (const OutcomeCount& item : outcomes) {
    object[std::string(to_string(item.outcome))] = item.count;
  }
  return object.dump();
}

std::vector<OutcomeCount> read_outcomes(const std::string& text) {
  return read_json(text, "counts of outcomes", [](const OrderedJson& object) {
    std::vector<OutcomeCount> outcomes;
    for (const auto& [name, count] : object.get_ref<const OrderedJson::object_t&>()) {
      outcomes.push_back({read_outcome(name), count.get<std::uint32_t>()});
    }
    return outcomes;
  });
}

std::string write_stages(const std::vector<StageTime>& stages) {
  OrderedJson object = OrderedJson::object();
  for (const StageTime& item : stages) {
    object[item.stage] = item.ms;
  }
  return object.dump();
}

std::vector<StageTime> read_stages(const std::string& text) {
  return read_json(text, "times of stages", [](const OrderedJson& object) {
    std::vector<StageTime> stages;
    for (const auto& [stage, ms] : object.get_ref<const OrderedJson::object_t&>()) {
      stages.push_back({stage, ms.get<double>()});
    }
    return stages;
  });
}

std::string write_facts(const DeviceFacts& facts) {
  return OrderedJson{{"name", facts.name},
                     {"pci_device_id", facts.pci_device_id},
                     {"cc_major", facts.cc_major},
                     {"cc_minor", facts.cc_minor},
                     {"sm_count", facts.sm_count},
                     {"l2_bytes", facts.l2_bytes},
                     {"shared_optin_bytes", facts.shared_optin_bytes},
                     {"memory_bytes", facts.memory_bytes},
                     {"memory_bus_bits", facts.memory_bus_bits},
                     {"mig_profile", facts.mig_profile},
                     {"power_limit_mw", facts.power_limit_mw},
                     {"max_sm_mhz", facts.max_sm_mhz},
                     {"replay_table", facts.replay_table}}
      .dump();
}

DeviceFacts read_facts(const std::string& text) {
  return read_json(text, "device facts", [](const OrderedJson& json) {
    DeviceFacts facts;
    json.at("name").get_to(facts.name);
    json.at("pci_device_id").get_to(facts.pci_device_id);
    json.at("cc_major").get_to(facts.cc_major);
    json.at("cc_minor").get_to(facts.cc_minor);
    json.at("sm_count").get_to(facts.sm_count);
    json.at("l2_bytes").get_to(facts.l2_bytes);
    json.at("shared_optin_bytes").get_to(facts.shared_optin_bytes);
    json.at("memory_bytes").get_to(facts.memory_bytes);
    json.at("memory_bus_bits").get_to(facts.memory_bus_bits);
    json.at("mig_profile").get_to(facts.mig_profile);
    json.at("power_limit_mw").get_to(facts.power_limit_mw);
    json.at("max_sm_mhz").get_to(facts.max_sm_mhz);
    json.at("replay_table").get_to(facts.replay_table);
    return facts;
  });
}

std::string write_doubles(const std::vector<double>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::vector<double> read_doubles(const std::string& bytes) {
  if (bytes.size() % sizeof(double) != 0) {
    damaged("doubles", std::to_string(bytes.size()) + " bytes");
  }
  std::vector<double> values(bytes.size() / sizeof(double));
  if (!values.empty()) {
    std::memcpy(values.data(), bytes.data(), bytes.size());
  }
  if (!std::ranges::all_of(values, [](double value) { return std::isfinite(value); })) {
    throw Error(ErrorCode::DataLoss, "", "holds a number that is not finite");
  }
  return values;
}

std::string write_digests(const std::vector<Digest>& digests) {
  std::string bytes;
  for (const Digest& digest : digests) {
    bytes += digest.view();
  }
  return bytes;
}

std::vector<Digest> read_digests(const std::string& bytes) {
  std::vector<Digest> digests;
  for (std::size_t at = 0; at < bytes.size(); at += 32) {
    const auto digest = Digest::from_bytes(std::string_view(bytes).substr(at, 32));
    digests.push_back(known(digest, "digests", std::to_string(bytes.size()) + " bytes"));
  }
  return digests;
}

Outcome read_outcome(std::string_view name) { return known(parse_outcome(name), "an outcome", name); }

Evidence read_evidence(std::string_view name) { return known(parse_evidence(name), "an evidence", name); }

std::string_view origin_name(Origin origin) { return name_of(kOrigins, origin); }
Origin read_origin(std::string_view name) { return value_of(kOrigins, name); }
std::string_view state_name(JobState state) { return name_of(kStates, state); }
JobState read_state(std::string_view name) { return value_of(kStates, name); }
std::string_view kind_name(JobKind kind) { return name_of(kKinds, kind); }
JobKind read_kind(std::string_view name) { return value_of(kKinds, name); }

Policy read_policy(std::string_view text) { return known(parse_policy(text), "a policy", text); }

Numerics read_numerics(std::string_view text) {
  return known(parse_numerics(text), "a numerics guarantee", text);
}

}  // namespace cubind::store
