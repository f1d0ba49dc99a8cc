#include <map>
#include <set>

#include "base/json_node.hpp"
#include "tuner/table/table_elements.hpp"
#include "tuner/table/table_identity.hpp"
#include "tuner/table/table_parts.hpp"

namespace cubind {
namespace {

template <typename Identity>
using Indices = std::map<Identity, std::size_t>;

class Reader {
 public:
  Reader(const JsonNode& root, std::size_t max_faults, const Interrupt& interrupt)
      : root_(root), max_faults_(max_faults), interrupt_(interrupt) {}

  TableParts run() {
    std::set<Digest> seen;
    for_each("devices", [&](const JsonNode& node, std::size_t) {
      const Digest device_class = read_digest(node.at("class"));
      classes_.insert(device_class);  // also of a device with a fault: its records have none
      parts_.table.devices.push_back(read_device(node));
      plays_a_table_[device_class] = !parts_.table.devices.back().facts.replay_table().empty();
      if (!seen.insert(parts_.table.devices.back().device_class).second) {
        node.fail("the table has this class twice");
      }
    });
    Indices<RecordIdentity> records;
    for_each("records", [&](const JsonNode& node, std::size_t index) {
      TableRecord record = read_record(node);
      check_evidence(node, record);
      check_element(node, index, record, records);
      parts_.table.records.push_back(std::move(record));
      parts_.record_indices.push_back(index);
    });
    Indices<TrialIdentity> trials;
    for_each("trials", [&](const JsonNode& node, std::size_t index) {
      TableTrial trial = read_trial(node);
      check_element(node, index, trial, trials);
      parts_.table.trials.push_back(std::move(trial));
      parts_.trial_indices.push_back(index);
    });
    return std::move(parts_);
  }

 private:
  template <typename Read>
  void for_each(std::string_view list, const Read& read) {
    if (list == "trials" && !root_.contains(list)) {
      return;
    }
    std::size_t index = 0;
    for (const JsonNode& node : root_.at(list).elements()) {
      ask(interrupt_);
      try {
        read(node, index++);
      } catch (const Error& fault) {
        if (parts_.faults.size() + 1 >= max_faults_) {
          throw;
        }
        parts_.faults.push_back(fault);
      }
    }
  }

  template <typename Element, typename Identity>
  void check_element(const JsonNode& node, std::size_t index, const Element& element,
                     Indices<Identity>& seen) const {
    if (!classes_.contains(element.context.device_class)) {
      node.at("device").fail("this class is not among /devices");
    }
    const auto [first, added] = seen.try_emplace(identity_of(element), index);
    if (added) {
      return;
    }
    const std::string& pointer = node.pointer();
    node.fail("the table has this twice, the first is " + pointer.substr(0, pointer.rfind('/') + 1) +
              std::to_string(first->second));
  }

  // Nothing is known of a device that has a fault itself.
  void check_evidence(const JsonNode& node, const TableRecord& record) const {
    const auto replays = plays_a_table_.find(record.context.device_class);
    if (replays == plays_a_table_.end()) {
      return;
    }
    if (replays->second && record.evidence == Evidence::Measured) {
      node.at("evidence").fail("a record of a replay device is replayed and not measured");
    }
    if (!replays->second && record.evidence == Evidence::Replayed) {
      node.at("evidence").fail("a record of a real device class is measured or imported and not replayed");
    }
  }

  const JsonNode& root_;
  const std::size_t max_faults_;
  const Interrupt& interrupt_;
  std::set<Digest> classes_;
  std::map<Digest, bool> plays_a_table_;
  TableParts parts_;
};

}  // namespace

TableParts read_table_parts(const OrderedJson& document, const std::string& file, std::size_t max_faults,
                            const Interrupt& interrupt) {
  const JsonNode root(document, file);
  root.expect_keys({"format", "version", "devices", "records", "trials"});
  root.at("format").as_choice({"cubind-table"});
  if (const JsonNode version = root.at("version"); version.as_int64() != 1) {
    version.fail("expected 1: another version of cubind wrote this table");
  }
  return Reader(root, max_faults, interrupt).run();
}

Table read_table(std::string_view text, const std::string& file, const Interrupt& interrupt) {
  JsonLimits limits;
  limits.max_bytes = kMaxTableBytes;
  limits.interrupt = interrupt;
  const OrderedJson document = parse_json_strict(text, file, limits);
  return read_table_parts(document, file, 1, interrupt).table;
}

}  // namespace cubind
