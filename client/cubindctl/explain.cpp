// cubindctl explain: why the winner of a problem won, from its stored trials.
#include <iostream>
#include <nlohmann/json.hpp>

#include "client/connection.hpp"
#include "client/cubindctl/commands.hpp"
#include "client/cubindctl/explanation_output.hpp"
#include "client/cubindctl/json_output.hpp"
#include "client/cubindctl/stored_trials.hpp"
#include "client/cubindctl/terminal.hpp"

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

}  // namespace

ExitCode run(const ExplainOptions& options, const CommonOptions& common) {
  const Connection connection(resolve_address(common.address));
  Asked asked = options.problem.empty() ? asked_of(connection.get_job(options.subject, common.deadline()))
                                        : asked_of(options);
  const auto spec =
      stored_spec(connection, asked.question.kernel, common, "a job's id goes without --problem");
  asked.question.problem = spec->canonicalize(asked.question.problem, "problem");
  const StoredTrials stored = stored_trials(connection, asked.question.kernel, asked.device, common);
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
