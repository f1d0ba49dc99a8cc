// cubindctl table diff: what differs between two tuning tables.
#include <charconv>
#include <cmath>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/text.hpp"
#include "client/cubindctl/commands.hpp"
#include "client/cubindctl/terminal/json_output.hpp"
#include "client/cubindctl/terminal/terminal.hpp"
#include "client/cubindctl/terminal/text_table.hpp"
#include "tuner/table/table_diff.hpp"

namespace cubind::ctl {
namespace {

using Labels = std::map<Digest, std::string>;

Labels labels_of(const Table& a, const Table& b) {
  Labels labels;
  for (const Table* table : {&a, &b}) {
    for (const TableDevice& device : table->devices) {
      labels.try_emplace(device.device_class, device.label);
    }
  }
  return labels;
}

// 2 of "2%", "2 %" and "2".
double parse_percentage(const std::string& text, const std::string& option) {
  std::string_view number = text;
  if (number.ends_with('%')) {
    number.remove_suffix(1);
  }
  number = number.substr(0, number.find_last_not_of(' ') + 1);
  double value = 0;
  const auto [end, fault] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (fault != std::errc() || end != number.data() + number.size() || !std::isfinite(value) || value < 0) {
    throw Error(ErrorCode::InvalidArgument, option, quoted(text) + " is not a percentage, such as 2%");
  }
  return value;
}

std::string signed_percent(double percent) {
  const std::string text = fixed(percent, 1);
  const bool is_zero = text == "0.0" || text == "-0.0";
  return (is_zero ? "0.0" : percent > 0 ? "+" + text : text) + " %";
}

// The terms of a question other than the problem: the policy, and every term that is not the default.
std::string terms(const TableRecord& record) {
  std::string text = record.context.policy;
  if (record.numerics != "tolerance") {
    text += " " + record.numerics;
  }
  return record.name_space.empty() ? text : text + " in " + record.name_space;
}

// The tunables that differ, "THREADS 256 -> 512"; a dash for those of one side alone.
std::string winner_text(const RecordChange& change) {
  const Configuration& before = change.before.context.configuration;
  const Configuration& after = change.after.context.configuration;
  std::vector<std::string> parts;
  for (const NamedValue& old : before.values) {
    const auto value = after.value(old.name);
    if (value != old.value) {
      parts.push_back(old.name + " " + std::to_string(old.value) + " -> " +
                      (value ? std::to_string(*value) : "-"));
    }
  }
  for (const NamedValue& added : after.values) {
    if (!before.value(added.name)) {
      parts.push_back(added.name + " - -> " + std::to_string(added.value));
    }
  }
  if (!parts.empty()) {
    return join(parts, ", ");
  }
  return change.cubin_changed() ? "same, other cubin" : "same";
}

class DiffPrinter {
 public:
  explicit DiffPrinter(const Labels& labels)
      : labels_(labels),
        table_({">CHANGE", ">A_US", ">B_US", "KERNEL", "PROBLEM", "DEVICE", "POLICY", "WINNER"}) {}

  void print(const TableDiff& diff) {
    for (const TableRecord& record : diff.only_before) {
      add("only in A", fixed(record.timing.median_us(), 2), "-", record,
          to_string(record.context.configuration));
    }
    for (const TableRecord& record : diff.only_after) {
      add("only in B", "-", fixed(record.timing.median_us(), 2), record,
          to_string(record.context.configuration));
    }
    for (const RecordChange& change : diff.changed) {
      add(signed_percent(change.percent()), fixed(change.before.timing.median_us(), 2),
          fixed(change.after.timing.median_us(), 2), change.after, winner_text(change));
    }
    table_.print(std::cout, output_columns());
  }

 private:
  void add(std::string change, std::string a, std::string b, const TableRecord& record, std::string winner) {
    const TableContext& context = record.context;
    table_.add({std::move(change), std::move(a), std::move(b), context.kernel, to_string(context.problem),
                labels_.at(context.device_class), terms(record), std::move(winner)});
  }

  const Labels& labels_;
  TextTable table_;
};

OutputJson question_json(const TableRecord& record, const Labels& labels) {
  const TableContext& context = record.context;
  return {{"kernel", context.kernel},
          {"problem", json_of(context.problem)},
          {"device", labels.at(context.device_class)},
          {"policy", context.policy},
          {"numerics", record.numerics},
          {"namespace", record.name_space}};
}

OutputJson answer_json(const TableRecord& record) {
  const TableContext& context = record.context;
  return {{"configuration", json_of(context.configuration)},
          {"time_us", record.timing.median_us()},
          {"time_low_us", record.timing.low_us()},
          {"time_high_us", record.timing.high_us()},
          {"evidence", to_string(record.evidence)},
          {"driver", context.driver},
          {"toolchain", context.toolchain.name},
          {"measured_at", record.timing.measured_at()}};
}

OutputJson records_json(const std::vector<TableRecord>& records, const Labels& labels) {
  OutputJson list = OutputJson::array();
  for (const TableRecord& record : records) {
    OutputJson entry = question_json(record, labels);
    entry.update(answer_json(record));
    list.push_back(std::move(entry));
  }
  return list;
}

OutputJson diff_json(const TableDiff& diff, const Labels& labels) {
  OutputJson changed = OutputJson::array();
  for (const RecordChange& change : diff.changed) {
    OutputJson entry = question_json(change.after, labels);
    entry["change_percent"] = change.percent();
    entry["winner_changed"] = change.winner_changed();
    entry["cubin_changed"] = change.cubin_changed();
    entry["a"] = answer_json(change.before);
    entry["b"] = answer_json(change.after);
    changed.push_back(std::move(entry));
  }
  return {{"only_in_a", records_json(diff.only_before, labels)},
          {"only_in_b", records_json(diff.only_after, labels)},
          {"changed", std::move(changed)}};
}

}  // namespace

ExitCode run(const TableDiffOptions& options, const CommonOptions& common) {
  std::optional<double> limit;
  if (options.fail_above) {
    limit = parse_percentage(*options.fail_above, "--fail-above");
  }
  const Table a = read_table(read_file(options.a), options.a);
  const Table b = read_table(read_file(options.b), options.b);
  const TableDiff diff = diff_tables(a, b);
  const Labels labels = labels_of(a, b);
  const std::size_t above = limit ? diff.count_above(*limit) : 0;
  if (common.json) {
    OutputJson document = diff_json(diff, labels);
    if (limit) {
      document["fail_above_percent"] = *limit;
      document["above"] = above;
    }
    print_json(document);
  } else if (!diff.empty()) {
    DiffPrinter(labels).print(diff);
    std::cout << diff.only_before.size() << " only in A, " << diff.only_after.size() << " only in B, "
              << diff.changed.size() << " changed";
    if (limit) {
      std::cout << ", " << above << " slower by more than " << *limit << " %";
    }
    std::cout << "\n";
  }
  return above > 0 ? ExitCode::Failure : ExitCode::Ok;
}

}  // namespace cubind::ctl
