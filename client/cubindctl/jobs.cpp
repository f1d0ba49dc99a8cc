// cubindctl jobs and cancel.
#include <iostream>
#include <nlohmann/json.hpp>

#include "client/connection.hpp"
#include "client/cubindctl/commands.hpp"
#include "client/cubindctl/json_output.hpp"
#include "client/cubindctl/own_terms.hpp"
#include "client/cubindctl/progress.hpp"
#include "client/cubindctl/terminal.hpp"
#include "client/cubindctl/text_table.hpp"
#include "client/cubindctl/watch.hpp"
#include "tuner/plan/wire.hpp"

namespace cubind::ctl {
namespace {

std::string done_of(const v1::Job& job) {
  return job.configurations() == 0
             ? "-"
             : std::to_string(job.configurations_done()) + "/" + std::to_string(job.configurations());
}

// A compile job measures nothing: an answer waits for its cubin.
std::string kind_of(const v1::Job& job) { return job.kind() == v1::Job::COMPILE_WINNER ? "compile" : "tune"; }

void print(const google::protobuf::RepeatedPtrField<v1::Job>& jobs) {
  TextTable table({"JOB", "KIND", "STATE", "KERNEL", "PROBLEM", "DEVICE", ">DONE", ">SECONDS", "DETAIL"});
  for (const v1::Job& job : jobs) {
    std::vector<std::string> parts = own_terms(job.policy(), job.numerics(), job.namespace_());
    if (std::string detail = detail_of(job); !detail.empty()) {
      parts.push_back(std::move(detail));
    }
    table.add({job.id(), kind_of(job), state_name(job.state()), job.kernel(),
               to_string(problem_from_wire(job.problem(), "job.problem")), job.device(), done_of(job),
               fixed(job.elapsed_ms() / 1000, 1), remarks_of(parts)});
  }
  table.print(std::cout, output_columns());
}

}  // namespace

ExitCode run(const JobsOptions& options, const CommonOptions& common) {
  if (!options.watch.empty()) {
    // One after the other, in the order in which they were submitted: so they run, too.
    const auto stream = [&](Connection& connection, const OnTuneEvent& on_event,
                            const std::stop_token& stop) {
      for (const std::string& id : options.watch) {
        connection.watch_job(id, on_event, stop, common.timeout);
      }
    };
    return follow(common, options.watch.size(), stream);
  }
  const v1::ListJobsReply reply =
      Connection(resolve_address(common.address)).list_jobs(options.all, common.deadline());
  if (common.json) {
    OutputJson jobs = OutputJson::array();
    for (const v1::Job& job : reply.jobs()) {
      jobs.push_back(json_of(job));
    }
    print_json({{"jobs", jobs}});
  } else {
    print(reply.jobs());
  }
  return ExitCode::Ok;
}

ExitCode run(const CancelOptions& options, const CommonOptions& common) {
  const Connection connection(resolve_address(common.address));
  OutputJson cancelled = OutputJson::array();
  for (const std::string& id : options.ids) {
    const v1::Job job = connection.cancel_job(id, common.deadline());
    cancelled.push_back(json_of(job));
    if (!common.json) {
      std::cout << id << ": " << state_name(job.state()) << "\n";
    }
  }
  if (common.json) {
    print_json({{"jobs", cancelled}});
  }
  return ExitCode::Ok;
}

}  // namespace cubind::ctl
