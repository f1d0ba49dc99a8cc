// What a report shows, as one document: `cubindctl report --json`, and the data of its page.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/cubindctl/answers/explanation.hpp"
#include "client/cubindctl/options.hpp"
#include "client/cubindctl/terminal/json_output.hpp"

namespace cubind::ctl {

/// Above that many trials a page is slow to open: they are left out, with a remark.
inline constexpr std::size_t kMostReportedTrials = 20'000;
/// Of a failed configuration's message.
inline constexpr std::size_t kMostMessageBytes = 4'000;

struct ReportInput {
  std::string kernel;                         // empty: every kernel
  std::optional<ExplainedQuestion> question;  // of the one job that is reported; absent: all of the kernel
  std::string created_at;                     // RFC 3339, UTC
  v1::GetStatusReply status;
  Table table;
  std::shared_ptr<const KernelSpec> spec;  // of the kernel; null: the trials are left out
  std::vector<v1::Job> jobs;
  std::vector<std::string> remarks;  // why something is left out
};

/// Asks the daemon. Throws Error(InvalidArgument) without a kernel, a job or `all`.
ReportInput read_report(const ReportOptions& options, const CommonOptions& common);

/// {"kernel", "devices", "records", "tunings", "jobs", "remarks", ...}; docs/cli.md describes it. A tuning is
/// the document of `explain` with every timed trial in "best".
OutputJson report_data(const ReportInput& input);

}  // namespace cubind::ctl
