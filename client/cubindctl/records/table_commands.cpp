// cubindctl table check and merge: tuning tables as files. No daemon and no GPU.
#include <filesystem>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/text.hpp"
#include "client/cubindctl/commands.hpp"
#include "client/cubindctl/kernels/known_specs.hpp"
#include "client/cubindctl/records/table_measure.hpp"
#include "client/cubindctl/records/table_output.hpp"
#include "client/cubindctl/terminal/json_output.hpp"
#include "client/cubindctl/terminal/text_table.hpp"
#include "tuner/table/table_check.hpp"
#include "tuner/table/table_merge.hpp"

namespace cubind::ctl {
namespace {

bool fails(const TableCheck& check, const TableCheckOptions& options) {
  return std::ranges::any_of(check.findings, [&](const TableFinding& finding) {
    return !finding.outdated || !options.allow_outdated;
  });
}

void print(const TableCheck& check, const std::string& file, const TableCheckOptions& options) {
  // One line a cause: a change of a spec outdates all records of its kernel alike.
  std::map<std::string, std::vector<std::string>> locations;
  for (const TableFinding& finding : check.findings) {
    locations[finding.cause].push_back(finding.where);
  }
  for (const TableFinding& finding : check.findings) {
    auto same = locations.extract(finding.cause);
    if (same.empty()) {
      continue;
    }
    const std::size_t others = same.mapped().size() - 1;
    std::cout << finding.where << (others > 0 ? " and " + counted(others, "other place") : "") << ": "
              << (finding.outdated && options.allow_outdated ? "warning: " : "") << finding.cause << "\n";
  }
  if (check.findings.empty()) {
    std::cout << file << ": " << counted(check.records, "record") << " and " << counted(check.trials, "trial")
              << " in order\n";
  }
}

OutputJson check_json(const TableCheck& check, const std::string& file, const TableCheckOptions& options) {
  OutputJson findings = OutputJson::array();
  for (const TableFinding& finding : check.findings) {
    findings.push_back({{"where", finding.where}, {"cause", finding.cause}, {"outdated", finding.outdated}});
  }
  return {{"file", file},
          {"ok", !fails(check, options)},
          {"records", check.records},
          {"trials", check.trials},
          {"findings", std::move(findings)}};
}

}  // namespace

ExitCode run(const TableCheckOptions& options, const CommonOptions& common) {
  const std::optional<StopSignals> interrupt =
      options.measure ? std::optional<StopSignals>(std::in_place) : std::nullopt;
  const KnownSpecs known = known_specs(options.kernels);
  OutputJson files = OutputJson::array();
  bool failed = false;
  for (const std::string& file : options.files) {
    const std::string text = read_file(file);
    const TableCheck check = check_table(text, file, known);
    failed = failed || fails(check, options);
    if (common.json) {
      files.push_back(check_json(check, file, options));
    } else {
      print(check, file, options);
    }
    if (!interrupt || fails(check, options)) {
      continue;
    }
    const MeasuredTable measured = measure_table(read_table(text, file), common, *interrupt);
    failed = failed || fails(measured, options);
    if (common.json) {
      files.back()["measured"] = json_of(measured, options);
    } else {
      print(measured, file, options);
    }
  }
  if (common.json) {
    print_json({{"files", std::move(files)}});
  }
  return failed ? ExitCode::Failure : ExitCode::Ok;
}

ExitCode run(const TableMergeOptions& options, const CommonOptions& common) {
  std::vector<NamedTable> tables;
  for (const std::string& file : options.files) {
    tables.push_back({file, read_table(read_file(file), file)});
  }
  const Table merged = merge_tables(tables);
  const std::string text = print_table(merged);
  if (text.size() > kMaxTableBytes) {
    throw Error(
        ErrorCode::ResourceExhausted, options.output.empty() ? "merged table" : options.output,
        size_text(text.size()) + ", a table that can be read has at most " + size_text(kMaxTableBytes));
  }
  output_table(options.output, text,
               ": " + counted(merged.records.size(), "record") + " and " +
                   counted(merged.trials.size(), "trial") + " of " + counted(tables.size(), "table"),
               {{"devices", merged.devices.size()},
                {"records", merged.records.size()},
                {"trials", merged.trials.size()}},
               common);
  return ExitCode::Ok;
}

}  // namespace cubind::ctl
