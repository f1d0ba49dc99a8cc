// cubindctl report: a page that shows what was tuned.
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/text.hpp"
#include "client/connection.hpp"
#include "client/cubindctl/answers/stored_trials.hpp"
#include "client/cubindctl/commands.hpp"
#include "client/cubindctl/records/table_output.hpp"
#include "client/cubindctl/report/report_data.hpp"
#include "client/cubindctl/report/report_page.hpp"
#include "client/cubindctl/report/stability.hpp"

namespace cubind::ctl {
namespace {

constexpr const char* kAllRemark =
    "the trials are left out of a report on all kernels: `cubindctl report KERNEL` shows those of one";

void add_jobs(ReportInput& input, const Connection& connection, const ReportOptions& options,
              const CommonOptions& common) {
  const v1::ListJobsReply reply = connection.list_jobs(true, common.deadline());
  for (const v1::Job& job : reply.jobs()) {
    const bool is_asked = (input.kernel.empty() || job.kernel() == input.kernel) &&
                          (options.device.empty() || job.device() == options.device);
    if (job.kind() == v1::Job::TUNE && is_asked) {
      input.jobs.push_back(job);
    }
  }
}

// Without the spec the page has no trials, and everything else.
void add_spec(ReportInput& input, const Connection& connection, const std::string& hint,
              const CommonOptions& common) {
  try {
    input.spec = stored_spec(connection, input.kernel, common, hint);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::FailedPrecondition) {
      throw;
    }
    input.remarks.push_back("the trials are left out: " + std::string(error.what()));
  }
}

void add_remark(ReportInput& input, const std::string& remark) {
  if (!remark.empty()) {
    input.remarks.push_back(remark);
  }
}

void add_trials(ReportInput& input, const Connection& connection, const std::string& device,
                const ReportOptions& options, const CommonOptions& common) {
  add_spec(input, connection, options.hint, common);
  StoredTrials stored = stored_trials(connection, input.kernel, device, options.shipped, common);
  input.table = std::move(stored.table);
  if (!stored.has_samples) {
    input.remarks.emplace_back(kNoSamplesRemark);
  }
  add_remark(input, shipped_left_out(stored.shipped_left_out));
}

void add_job(ReportInput& input, const Connection& connection, const ReportOptions& options,
             const CommonOptions& common) {
  const v1::Job job = connection.get_job(options.job, common.deadline());
  input.question = question_of(job);
  input.question->device_class = Digest::from_bytes(job.device_class());
  input.kernel = job.kernel();
  input.jobs.push_back(job);
  add_trials(input, connection, job.device(), options, common);
  if (input.spec) {
    input.question->problem = input.spec->canonicalize(input.question->problem, "problem");
  }
}

void add_everything(ReportInput& input, const Connection& connection, const ReportOptions& options,
                    const CommonOptions& common) {
  v1::ExportTableRequest request;
  request.set_device(options.device);
  request.set_include_replayed(true);
  request.set_include_provisional(true);
  request.set_include_shipped(options.shipped);
  const v1::TableChunk table = connection.export_table(request, common.deadline());
  input.table = read_table(table.json(), "the daemon's table");
  input.remarks.emplace_back(kAllRemark);
  add_remark(input, shipped_left_out(table.shipped_left_out()));
  add_jobs(input, connection, options, common);
}

}  // namespace

ReportInput read_report(const ReportOptions& options, const CommonOptions& common) {
  if (options.kernel.empty() && options.job.empty() && !options.all) {
    throw Error(ErrorCode::InvalidArgument, "report", "name a kernel, a job (--job ID) or --all");
  }
  const Connection connection(resolve_address(common.address));
  ReportInput input;
  input.kernel = options.kernel;
  input.created_at = RealClock().wall_text();
  input.status = connection.get_status(common.deadline());
  if (options.all) {
    add_everything(input, connection, options, common);
  } else if (!options.job.empty()) {
    add_job(input, connection, options, common);
  } else {
    add_trials(input, connection, options.device, options, common);
    add_jobs(input, connection, options, common);
  }
  return input;
}

ExitCode run(const ReportOptions& options, const CommonOptions& common) {
  if (options.stability) {
    return print_stability(options, common);
  }
  const OutputJson data = report_data(read_report(options, common));
  if (!common.json) {
    output_table(options.output, report_page(data),
                 ": " + counted(data["records"].size(), "record") + ", " +
                     counted(data["tunings"].size(), "tuning") + " with trials",
                 {}, common);
    return ExitCode::Ok;
  }
  if (!options.output.empty()) {
    write_output(options.output, report_page(data));
  }
  print_json(data);
  return ExitCode::Ok;
}

}  // namespace cubind::ctl
