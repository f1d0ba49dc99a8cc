#include "client/web/record_pages.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "base/text.hpp"
#include "client/connection.hpp"
#include "client/cubindctl/answers/audit.hpp"
#include "client/cubindctl/answers/comparison_output.hpp"
#include "client/cubindctl/answers/own_terms.hpp"
#include "client/cubindctl/report/report_commands.hpp"
#include "client/cubindctl/report/stability.hpp"
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

}  // namespace

View records_page(const Snapshot& snapshot) {
  const Records& records = snapshot.records;
  Grid table = records_table(records);
  table.none = records.missing.empty() ? "No record is stored: `cubindctl tune` makes one." : "";
  return {"How fast is each winner, next to the default and the library?",
          "cubindctl report --all --shipped --json",
          {Sentence{records.missing}, std::move(table)}};
}

View stability_page(const Snapshot& snapshot, const std::string& kernel) {
  const auto records = records_of(snapshot, kernel);
  const std::vector<ctl::Stability> questions =
      ctl::stability_of(Connection(snapshot.address), kernel, records, kStoreDeadline);
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
  for (const ctl::Stability& one : questions) {
    table.rows.push_back({{problem_text(one.today.provenance().measured_problem())},
                          {one.today.provenance().measured_device()},
                          {counted(one.measured, "time"), static_cast<double>(one.measured)},
                          {counted(one.changes, "time"), static_cast<double>(one.changes)},
                          number_cell(one.first_over_today(), 3),
                          number_cell(one.today_us(), 2),
                          {ctl::marks_of(one.today)},
                          {ctl::configuration_text(one.today)}});
  }
  const auto changed = std::ranges::count_if(questions, [](const auto& one) { return one.changes > 0; });
  View view{
      "Do the winners of " + kernel + " stay when they are measured again?",
      "cubindctl report " + ctl::shell_word(kernel) + " --stability",
      {Sentence{snapshot.records.missing},
       Sentence{
           "Of " + counted(records.size(), "problem") + ", " + std::to_string(questions.size()) +
           (questions.size() == 1 ? " was" : " were") + " measured more than once; the winner of " +
           std::to_string(changed) +
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
  const auto gain = ctl::over_default(timing);
  return "Its problem's record: " + ctl::configuration_text(*record) + ", " +
         ctl::fixed(timing.median_us(), 2) + " µs" +
         (gain ? ", " + ctl::fixed(*gain, 2) + " times as fast as the default." : ".");
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
