#include "server/service/plan_call.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/interrupt.hpp"
#include "server/answer/freshness.hpp"
#include "server/jobs/job_times.hpp"
#include "server/service/status.hpp"
#include "server/service/wanted.hpp"
#include "server/store/store.hpp"
#include "tuner/spec/space.hpp"
#include "tuner/spec/wire.hpp"

namespace cubind {
namespace {

struct PlanWishes {
  SearchBudget budget;
  bool retune = false;
  Interrupt interrupt;
};

JobTimes read_job_times(Store& store) {
  std::vector<JobRow> jobs;
  store.read([&](StoreReader& reader) { jobs = reader.ended_jobs(); });
  return JobTimes(jobs);
}

// What each replay device of the class says of itself. Other devices measure whatever fits.
std::string obstacle_of(const Question& question, const AgentProfiles& agents) {
  const std::string problem = question.key.kernel + " " + to_string(question.key.problem);
  bool refused = false;
  for (const AgentProfile& agent : agents) {
    for (const OfferedDevice& device : agent.devices) {
      if (device.device.digest != question.device.digest) {
        continue;
      }
      if (device.recorded.empty() || std::ranges::binary_search(device.recorded, problem)) {
        return "";
      }
      refused = true;
    }
  }
  return refused ? "the replayed table holds no recording of it" : "";
}

/// What a search of a space of so many configurations would try; 0: as many as the time allows.
std::uint64_t trials_under(const SearchBudget& budget, std::uint64_t valid) {
  const std::uint64_t limit = budget.said()               ? trials_of(budget)
                              : valid <= kExhaustiveLimit ? valid
                                                          : kDefaultTrials;
  return budget.max_seconds > 0 && limit == 0 ? 0 : std::min(limit, valid);
}

void plan(ServiceContext& context, const Question& question, const PlanWishes& wishes, const JobTimes& times,
          v1::PlannedProblem& planned) {
  const SpaceSize size = count_valid(*question.spec, question.key.problem,
                                     device_constants(question.device.facts), wishes.interrupt);
  planned.set_kernel(question.key.kernel);
  to_wire(question.key.problem, *planned.mutable_problem());
  planned.set_device(question.device.label);
  planned.set_valid(size.valid);
  planned.set_total(size.total);
  planned.set_trials(trials_under(wishes.budget, size.valid));
  planned.set_fresh(
      settled_answer(question, wishes.budget, context.answerer, *context.index.snapshot()).has_value());
  planned.set_obstacle(obstacle_of(question, *context.fleet.agents()));
  if ((planned.fresh() && !wishes.retune) || !planned.obstacle().empty()) {
    planned.set_estimate_ms(0);
    return;
  }
  const auto estimate = planned.trials() > 0 ? times.estimate(question.key, planned.trials()) : std::nullopt;
  if (estimate) {
    planned.set_estimate_ms(estimate->elapsed_ms);
    planned.set_estimated_from(estimate->jobs);
  }
}

/// On the job thread.
void add_open_jobs(const Scheduler& scheduler, const std::vector<Question>& questions,
                   v1::PlanTuneReply& reply) {
  for (std::size_t i = 0; i < questions.size(); ++i) {
    if (const auto job = scheduler.find_open(questions[i].key)) {
      v1::PlannedProblem& planned = *reply.mutable_problems(static_cast<int>(i));
      planned.set_job_id(job->job.id);
      planned.set_job_state(static_cast<v1::Job::State>(job->job.state));
    }
  }
}

}  // namespace

grpc::ServerUnaryReactor* plan_tune(ServiceContext& context, grpc::CallbackServerContext& call,
                                    const v1::TuneRequest& request, v1::PlanTuneReply& reply) {
  grpc::ServerUnaryReactor* reactor = call.DefaultReactor();
  context.walks.post([&context, &call, reactor, &request, &reply] {
    std::vector<Question> questions;
    const grpc::Status planned = guarded([&] {
      refuse_while_draining(context);
      const PlanWishes wishes{budget_of(request), request.retune(), [&] {
                                refuse_while_draining(context);
                                if (call.IsCancelled()) {
                                  throw Error(ErrorCode::Cancelled, "call", "the caller went away");
                                }
                              }};
      questions = questions_of(context, request);
      const JobTimes times = read_job_times(context.store);
      for (const Question& question : questions) {
        plan(context, question, wishes, times, *reply.add_problems());
      }
    });
    if (!planned.ok()) {
      reactor->Finish(planned);
      return;
    }
    context.jobs.post([&context, reactor, &reply, questions = std::move(questions)] {
      reactor->Finish(guarded([&] { add_open_jobs(context.scheduler, questions, reply); }));
    });
  });
  return reactor;
}

}  // namespace cubind
