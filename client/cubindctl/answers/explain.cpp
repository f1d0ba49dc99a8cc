// cubindctl explain: why the winner of a problem won, from its stored trials.
#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/text.hpp"
#include "client/connection.hpp"
#include "client/cubindctl/answers/explanation_output.hpp"
#include "client/cubindctl/answers/stored_trials.hpp"
#include "client/cubindctl/commands.hpp"
#include "client/cubindctl/terminal/json_output.hpp"
#include "client/cubindctl/terminal/terminal.hpp"
#include "plan/wire.hpp"

namespace cubind::ctl {
namespace {

struct Asked {
  ExplainedQuestion question;
  std::string device;  // label; empty: whichever has trials
};

Asked asked_of(const v1::Job& job) { return {question_of(job), job.device()}; }

Asked asked_of(const ExplainOptions& options) {
  Asked asked;
  asked.question = question_of(options.subject, options);
  asked.question.problem = parse_problem(options.problem);
  asked.device = options.device;
  return asked;
}

// At most eight problems that jobs have tuned here, the latest first.
std::vector<std::string> tuned_problems(const Connection& connection, const std::string& kernel,
                                        const CommonOptions& common) {
  std::vector<std::string> problems;
  const v1::ListJobsReply reply = connection.list_jobs(true, common.deadline());
  for (const v1::Job& job : reply.jobs()) {
    const std::string problem = to_string(problem_from_wire(job.problem(), "job.problem"));
    if (job.kernel() == kernel && job.kind() == v1::Job::TUNE && job.state() == v1::Job::DONE &&
        std::ranges::find(problems, problem) == problems.end()) {
      problems.insert(problems.begin(), problem);
    }
  }
  problems.resize(std::min<std::size_t>(problems.size(), 8));
  return problems;
}

// Of a job's id. A kernel's name alone does not say which of its problems is meant.
Asked asked_of(const Connection& connection, const std::string& subject, const CommonOptions& common) {
  try {
    return asked_of(connection.get_job(subject, common.deadline()));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::NotFound) {
      throw;
    }
  }
  stored_spec(connection, subject, common, "nor is there such a job: `cubindctl jobs --all` lists them");
  const std::vector<std::string> problems = tuned_problems(connection, subject, common);
  throw Error(ErrorCode::InvalidArgument, subject,
              "is a kernel: name one of its problems by --problem" +
                  (problems.empty() ? "; none was tuned here yet: `cubindctl tune` does"
                                    : ", as in `cubindctl explain " + subject + " --problem " +
                                          problems.front() + "` (tuned here: " + join(problems, "; ") + ")"));
}

}  // namespace

ExitCode run(const ExplainOptions& options, const CommonOptions& common) {
  const Connection connection(resolve_address(common.address));
  Asked asked = options.problem.empty() ? asked_of(connection, options.subject, common) : asked_of(options);
  const auto spec =
      stored_spec(connection, asked.question.kernel, common, "a job's id goes without --problem");
  asked.question.problem = spec->canonicalize(asked.question.problem, "problem");
  const StoredTrials stored = stored_trials(connection, asked.question.kernel, asked.device, false, common);
  Explanation explanation = explain(stored.table, *spec, asked.question);
  if (!stored.has_samples) {
    explanation.remarks.emplace_back(kNoSamplesRemark);
  }
  if (common.json) {
    print_json(json_of(explanation, asked.question));
  } else {
    print(std::cout, explanation, asked.question, output_columns());
  }
  return ExitCode::Ok;
}

}  // namespace cubind::ctl
