#include "server/service/plan_call.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "server/answer/freshness.hpp"
#include "server/jobs/job_times.hpp"
#include "server/service/status.hpp"
#include "server/service/wanted.hpp"
#include "server/store/store.hpp"
#include "tuner/spec/space.hpp"
#include "tuner/spec/wire.hpp"

namespace cubind {
namespace {

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

void plan(ServiceContext& context, const Question& question, bool retune, const JobTimes& times,
          v1::PlannedProblem& planned) {
  const SpaceSize size =
      count_valid(*question.spec, question.key.problem, device_constants(question.device.facts));
  planned.set_kernel(question.key.kernel);
  to_wire(question.key.problem, *planned.mutable_problem());
  planned.set_device(question.device.label);
  planned.set_valid(size.valid);
  planned.set_total(size.total);
  planned.set_fresh(
      settled_answer(question, context.answerer, *context.index.snapshot(), context.store).has_value());
  planned.set_obstacle(obstacle_of(question, *context.fleet.agents()));
  if ((planned.fresh() && !retune) || !planned.obstacle().empty()) {
    planned.set_estimate_ms(0);
  } else if (const auto estimate = times.estimate(question.key, size.valid)) {
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
  context.background.post([&context, reactor, &request, &reply] {
    std::vector<Question> questions;
    const grpc::Status planned = guarded([&] {
      refuse_while_draining(context);
      questions = questions_of(context, request);
      const JobTimes times = read_job_times(context.store);
      for (const Question& question : questions) {
        plan(context, question, request.retune(), times, *reply.add_problems());
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
