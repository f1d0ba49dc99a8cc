#include "client/cubindctl/report/stability.hpp"

#include <algorithm>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "client/cubindctl/answers/own_terms.hpp"
#include "client/cubindctl/terminal/json_output.hpp"
#include "client/cubindctl/terminal/terminal.hpp"
#include "client/cubindctl/terminal/text_table.hpp"
#include "plan/wire.hpp"

namespace cubind::ctl {
namespace {

Problem problem_of(const v1::ListedRecord& record) {
  return problem_from_wire(record.provenance().measured_problem(), "problem");
}

// Equal for the records that one question had one after the other.
std::string question_of(const v1::ListedRecord& record) {
  const v1::Provenance& of = record.provenance();
  return to_string(problem_of(record)) + " " + of.measured_device_class() +
         record.policy().SerializeAsString() + " " + record.numerics().SerializeAsString() + " " +
         record.namespace_() + v1::Evidence_Name(of.evidence());
}

OutputJson document_of(const Stability& one) {
  OutputJson json{{"problem", json_of(problem_of(one.today))},
                  {"device", one.today.provenance().measured_device()},
                  {"measured", one.measured},
                  {"winner_changes", one.changes},
                  {"first_over_today_ratio", one.first_over_today()},
                  {"time_us", one.today_us()},
                  {"configuration", json_of(configuration_from_wire(one.today.configuration(), "winner"))}};
  if (std::string marks = marks_of(one.today); !marks.empty()) {
    json["remarks"] = std::move(marks);
  }
  return json;
}

void print(const std::vector<Stability>& questions) {
  TextTable table({"PROBLEM", "?DEVICE", ">MEASURED", ">CHANGED", ">FIRST/TODAY", ">TIME_US", "??REMARKS",
                   "CONFIGURATION"});
  for (const Stability& one : questions) {
    const std::string marks = marks_of(one.today);
    table.add({to_string(problem_of(one.today)), one.today.provenance().measured_device(),
               std::to_string(one.measured), std::to_string(one.changes), fixed(one.first_over_today(), 3),
               fixed(one.today_us(), 2), marks.empty() ? "-" : marks, configuration_text(one.today)});
  }
  table.print(std::cout, output_columns());
}

}  // namespace

double Stability::first_over_today() const { return first_us / std::max(1e-9, today_us()); }

std::vector<Stability> stability_of(const Connection& connection, const std::string& kernel,
                                    std::span<const v1::ListedRecord> records,
                                    std::chrono::milliseconds deadline) {
  v1::ListRecordsRequest request;
  request.set_kernel(kernel);
  request.set_superseded(true);
  std::map<std::string, std::vector<v1::ListedRecord>> questions;  // the oldest first
  for (v1::ListedRecord& record : connection.list_records(request, deadline)) {
    questions[question_of(record)].push_back(std::move(record));
  }
  if (records.empty() && questions.empty()) {
    connection.require_kernel(kernel, deadline);
  }
  for (const v1::ListedRecord& record : records) {
    if (const auto again = questions.find(question_of(record)); again != questions.end()) {
      again->second.push_back(record);
    }
  }
  std::vector<Stability> result;
  for (auto& [question, all] : questions) {
    if (all.size() > 1) {
      std::vector<std::string> winners;
      std::ranges::transform(all, std::back_inserter(winners), configuration_text);
      const auto end = std::ranges::unique(winners).begin();
      result.push_back({std::move(all.back()), all.size(),
                        static_cast<std::size_t>(end - winners.begin() - 1),
                        all.front().provenance().timing().median_us()});
    }
  }
  std::ranges::stable_sort(result, std::ranges::greater(), &Stability::measured);
  return result;
}

ExitCode print_stability(const ReportOptions& options, const CommonOptions& common) {
  const Connection connection(resolve_address(common.address));
  v1::ListRecordsRequest request;
  request.set_kernel(options.kernel);
  const std::vector<v1::ListedRecord> records = connection.list_records(request, common.deadline());
  const std::vector<Stability> questions =
      stability_of(connection, options.kernel, records, common.deadline());
  if (common.json) {
    OutputJson again = OutputJson::array();
    for (const Stability& one : questions) {
      again.push_back(document_of(one));
    }
    print_json({{"kernel", options.kernel}, {"records", records.size()}, {"measured_again", again}});
  } else if (questions.empty()) {
    std::cout << "No problem was measured more than once.\n";
  } else {
    print(questions);
  }
  return ExitCode::Ok;
}

}  // namespace cubind::ctl
