#include "client/web/record_pages.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "base/text.hpp"
#include "client/connection.hpp"
#include "client/cubindctl/answers/audit.hpp"
#include "client/cubindctl/answers/own_terms.hpp"
#include "client/cubindctl/report/report_commands.hpp"
#include "client/cubindctl/terminal/json_output.hpp"
#include "client/cubindctl/terminal/text_table.hpp"
#include "client/web/record_columns.hpp"
#include "client/web/terms.hpp"

namespace cubind::web {
namespace {

constexpr std::chrono::seconds kStoreDeadline{10};
constexpr std::size_t kMostAudited = 1000;  // records: about two seconds
// What the daemon adds for a reader, as this process is one.
constexpr const char* kOnlyReads =
    ": the caller is a reader, for whom nothing is compiled or tuned: a token of a tuner is needed";
constexpr std::size_t kWinnerChanged = 3;  // column of the stability table

// A line for each check of an audited record that has the verdict.
std::string checks_text(const ctl::OutputJson& record, const std::string& verdict) {
  std::vector<std::string> lines;
  for (const ctl::OutputJson& line : record["checks"]) {
    if (line["verdict"] == verdict) {
      lines.push_back(line["check"].get<std::string>() + ": " + line["evidence"].get<std::string>());
    }
  }
  return join(lines, "\n");
}

std::span<const v1::ListedRecord> records_of(const Snapshot& snapshot, const std::string& kernel) {
  const auto range = std::ranges::equal_range(*snapshot.records.list, kernel, {}, &v1::ListedRecord::kernel);
  return {range.begin(), range.end()};
}

// Equal for the records that one question had one after the other.
std::string question_of(const v1::ListedRecord& record) {
  const v1::Provenance& of = record.provenance();
  return problem_text(of.measured_problem()) + " " + of.measured_device_class() +
         record.policy().SerializeAsString() + " " + record.numerics().SerializeAsString() + " " +
         record.namespace_() + v1::Evidence_Name(of.evidence());
}

using Remeasured = std::map<std::string, std::vector<v1::ListedRecord>>;  // by question; the oldest first

Remeasured remeasured(const Snapshot& snapshot, const std::string& kernel) {
  v1::ListRecordsRequest request;
  request.set_kernel(kernel);
  request.set_superseded(true);
  Remeasured questions;
  for (v1::ListedRecord& record : Connection(snapshot.address).list_records(request, kStoreDeadline)) {
    questions[question_of(record)].push_back(std::move(record));
  }
  if (!questions.empty()) {
    for (const v1::ListedRecord& record : records_of(snapshot, kernel)) {
      if (const auto again = questions.find(question_of(record)); again != questions.end()) {
        again->second.push_back(record);
      }
    }
  }
  std::erase_if(questions, [](const auto& question) { return question.second.size() < 2; });
  return questions;
}

Row stability_row(const std::vector<v1::ListedRecord>& records) {
  std::vector<std::string> winners;
  std::ranges::transform(records, std::back_inserter(winners), configuration_text);
  const v1::ListedRecord& today = records.back();
  const double now = today.provenance().timing().median_us(),
               first = records.front().provenance().timing().median_us();
  const auto end = std::ranges::unique(winners).begin();
  const auto flips = static_cast<std::size_t>(end - winners.begin() - 1);
  const std::string marks = marks_of(today);
  return {{problem_text(today.provenance().measured_problem())},
          {today.provenance().measured_device()},
          {counted(records.size(), "time"), static_cast<double>(records.size())},
          {counted(flips, "time"), static_cast<double>(flips)},
          number_cell(first / std::max(1e-9, now), 3),
          number_cell(now, 2),
          {marks.empty() ? "-" : marks},
          {configuration_text(today)}};
}

}  // namespace

View records_page(const Snapshot& snapshot) {
  const Records& records = snapshot.records;
  Grid table;
  table.none = records.missing.empty() ? "No record is stored: `cubindctl tune` makes one." : "";
  table.is_asked = true;
  table.count = records.list->size();
  table.cell_of = [list = records.list](std::size_t row, std::size_t column) {
    return record_columns()[column].cell_of((*list)[row]);
  };
  table.text_of = [texts = records.texts](std::size_t row) -> const std::string& { return (*texts)[row]; };
  std::ranges::transform(record_columns(), std::back_inserter(table.columns), &RecordColumn::column);
  return {"How fast is each winner, next to the default and the library?",
          "cubindctl report --all --shipped --json",
          {Sentence{records.missing}, std::move(table)}};
}

View stability_page(const Snapshot& snapshot, const std::string& kernel) {
  const Remeasured questions = remeasured(snapshot, kernel);
  Grid table{{{"problem"},
              {"device"},
              {"measured", true},
              {"winner changed", true},
              {"the first winner's time over today's", true},
              {"time, µs", true},
              {"remarks"},
              {"winner"}},
             {},
             "No problem was measured more than once.",
             true};
  for (const auto& [question, records] : questions) {
    table.rows.push_back(stability_row(records));
  }
  const auto changed =
      std::ranges::count_if(table.rows, [](const Row& row) { return *row[kWinnerChanged].number > 0; });
  std::ranges::stable_sort(table.rows, std::ranges::greater(), [](const Row& row) { return row[2].number; });
  View view{
      "Do the winners of " + kernel + " stay when they are measured again?",
      "",
      {Sentence{snapshot.records.missing},
       Sentence{
           "Of " + counted(records_of(snapshot, kernel).size(), "problem") + ", " +
           std::to_string(questions.size()) + (questions.size() == 1 ? " was" : " were") +
           " measured more than once; the winner of " + std::to_string(changed) +
           " has changed. A first time over today's above 1: today's winner is faster. `cubindctl verify " +
           ctl::shell_word(kernel) + " --all` measures them again."},
       std::move(table)}};
  view.is_live = !snapshot.records.missing.empty();  // the daemon reads its store
  return view;
}

std::string record_text(const Snapshot& snapshot, const v1::Job& job) {
  const auto records = records_of(snapshot, job.kernel());
  const auto record = std::ranges::find_if(records, [&](const v1::ListedRecord& one) {
    const v1::Provenance& of = one.provenance();
    return of.evidence() != v1::SHIPPED && of.measured_device_class() == job.device_class() &&
           problem_text(of.measured_problem()) == problem_text(job.problem()) &&
           ctl::own_terms(one.policy(), one.numerics(), one.namespace_()) ==
               ctl::own_terms(job.policy(), job.numerics(), job.namespace_());
  });
  if (job.kind() != v1::Job::TUNE || record == records.end()) {
    return "";
  }
  const v1::Timing& timing = record->provenance().timing();
  return "Its problem's record: " + configuration_text(*record) + ", " + ctl::fixed(timing.median_us(), 2) +
         " µs" +
         (timing.has_gain_over_default()
              ? ", " + ctl::fixed(timing.gain_over_default(), 2) + " times as fast as the default."
              : ".");
}

std::optional<View> too_large(const Snapshot& snapshot, const std::string& kernel, std::size_t most_records,
                              const std::string& command) {
  const std::size_t count = records_of(snapshot, kernel).size();
  if (count <= most_records) {
    return std::nullopt;
  }
  return View{"This page would be too large",
              command,
              {Sentence{kernel + " has " + std::to_string(count) + " records, and this page is made of " +
                        std::to_string(most_records) + " at most."},
               Sentence{"Its records", "/records?words=" + url_encoded(kernel)}}};
}

View audit_page(const Snapshot& snapshot, const std::string& kernel) {
  const std::string command = "cubindctl audit " + ctl::shell_word(kernel) + " --shipped --verbose";
  if (auto view = too_large(snapshot, kernel, kMostAudited, command)) {
    return *std::move(view);
  }
  ctl::AuditOptions options;
  options.kernel = kernel;
  options.shipped = true;
  ctl::CommonOptions common;
  common.address = snapshot.address;
  const ctl::OutputJson audited = ctl::audit_document(options, common);
  Grid table{{{"verdict"}, {"problem"}, {"device"}, {"time, µs", true}, {"checks that failed"}, {"notes"}},
             {},
             "",
             true};
  std::size_t passed = 0;
  for (const ctl::OutputJson& record : audited["records"]) {
    std::vector<std::string> terms;
    for (const auto& [name, value] : record["problem"].items()) {
      terms.push_back(name + "=" + (value.is_string() ? value.get<std::string>() : value.dump()));
    }
    const std::string failed = checks_text(record, "fail");
    passed += failed.empty() ? 1 : 0;
    table.rows.push_back({{failed.empty() ? "ok" : "fail"},
                          {join(terms, ",")},
                          {record["device"].get<std::string>()},
                          number_cell(record["time_us"].get<double>(), 2),
                          {replaced(replaced(failed, kOnlyReads, ""), " us from", " µs from")},
                          {checks_text(record, "note")}});
  }
  std::ranges::stable_sort(table.rows, {}, [](const Row& row) { return row[0].text; });  // fail, ok
  View view{"Can the records of " + kernel + " be shipped?",
            command,
            {Sentence{std::to_string(passed) + " of " + counted(audited["records"].size(), "record") +
                      " passed each check. This page only reads: a record whose cubin is not compiled yet "
                      "fails \"today\"."},
             std::move(table)}};
  view.is_live = false;  // each audit asks the daemon for every record
  return view;
}

}  // namespace cubind::web
