// cubindctl jobs and cancel.
#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "client/connection.hpp"
#include "client/cubindctl/answers/own_terms.hpp"
#include "client/cubindctl/commands.hpp"
#include "client/cubindctl/reply_json.hpp"
#include "client/cubindctl/terminal/terminal.hpp"
#include "client/cubindctl/terminal/text_table.hpp"
#include "client/cubindctl/tune/progress.hpp"
#include "client/cubindctl/tune/watch.hpp"
#include "plan/wire.hpp"

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
  TextTable table(
      {"JOB", "??KIND", "STATE", "KERNEL", "PROBLEM", "??DEVICE", ">?DONE", ">??SECONDS", "DETAIL"});
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

std::string budget_of(const v1::Job& job) {
  std::string text = job.max_trials() > 0 ? counted(job.max_trials(), "trial") : "";
  if (job.max_seconds() > 0) {
    text += (text.empty() ? "" : ", ") + fixed(job.max_seconds(), 1) + " s";
  }
  return text.empty() ? "default" : text;
}

// What is of no stage: starting, and the time between leases.
double untold_ms(const v1::Job& job) {
  double told = 0;
  for (const v1::StageTime& stage : job.stages()) {
    told += stage.ms();
  }
  return std::max(0.0, job.elapsed_ms() - told);
}

void print_one(const v1::Job& job) {
  TextTable facts({"JOB", job.id()});
  facts.add({"state", state_name(job.state())});
  facts.add({"kernel", job.kernel()});
  facts.add({"problem", to_string(problem_from_wire(job.problem(), "job.problem"))});
  facts.add({"device", job.device()});
  facts.add({"budget", budget_of(job)});
  facts.add({"configurations", done_of(job)});
  for (const v1::OutcomeCount& outcome : job.outcomes()) {
    facts.add({"  " + outcome_name(outcome.outcome()), std::to_string(outcome.count())});
  }
  facts.add({"compiles", std::to_string(job.nvrtc_calls())});
  facts.add({"seconds", fixed(job.elapsed_ms() / 1000, 3)});
  for (const v1::StageTime& stage : job.stages()) {
    facts.add({"  " + stage.stage(), fixed(stage.ms() / 1000, 3)});
  }
  facts.add({"  other", fixed(untold_ms(job) / 1000, 3)});
  if (const std::string detail = detail_of(job); !detail.empty()) {
    facts.add({"detail", detail});
  }
  facts.print(std::cout, output_columns());
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
  } else if (reply.jobs().empty() && !options.all) {
    std::cout << "No job is open; `cubindctl jobs --all` lists those that have ended.\n";
  } else {
    print(reply.jobs());
  }
  return ExitCode::Ok;
}

ExitCode run(const JobsShowOptions& options, const CommonOptions& common) {
  const v1::Job job = Connection(resolve_address(common.address)).get_job(options.id, common.deadline());
  if (common.json) {
    print_json(json_of(job));
  } else {
    print_one(job);
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
