#include "server/service/plan_call.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/interrupt.hpp"
#include "server/answer/freshness.hpp"
#include "server/convert/replies.hpp"
#include "server/jobs/job_times.hpp"
#include "server/service/first_agent.hpp"
#include "server/service/raw_message.hpp"
#include "server/service/status.hpp"
#include "server/service/wanted.hpp"
#include "server/store/store.hpp"
#include "tuner/spec/space.hpp"
#include "tuner/spec/space_thinning.hpp"
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

// What each replay device of the class says of itself. Other devices measure whatever fits and is compiled.
std::string obstacle_of(const Question& question, const AgentProfiles& agents) {
  std::string why = no_compiler_because(agents, question.device.digest, kernel_need(question));
  if (!why.empty()) {
    return why;
  }
  const std::string problem = question.key.kernel + " " + to_string(question.key.problem);
  bool refused = false;
  for (const OfferedDevice& device : devices_of(agents)) {
    if (device.device.digest != question.device.digest) {
      continue;
    }
    if (device.recorded.empty() || std::ranges::binary_search(device.recorded, problem)) {
      return "";
    }
    refused = true;
  }
  return refused ? "the replayed table holds no recording of it" : "";
}

std::string why_none_is_valid(const Question& question, const Interrupt& interrupt) {
  const std::string why = what_leaves_none(*question.spec, question.key.problem,
                                           device_constants(question.device.facts), interrupt);
  return "no configuration is valid" + (why.empty() ? "" : ": " + why + " leaves none");
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
  planned.set_at_most(!size.exact);
  planned.set_trials(plan_search(size.valid, size.exact, wishes.budget).trials);
  planned.set_fresh(
      settled_answer(question, wishes.budget, context.answerer, *context.index.snapshot()).has_value());
  planned.set_obstacle(size.valid == 0 ? why_none_is_valid(question, wishes.interrupt)
                                       : obstacle_of(question, *context.fleet.agents()));
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
      planned.set_job_state(job->job.state);
    }
  }
}

/// One call. Each problem is a piece of work of its own: others' walks come between.
class PlanCall final : public grpc::ServerUnaryReactor, public std::enable_shared_from_this<PlanCall> {
 public:
  PlanCall(ServiceContext& context, OpenCallPtr open, v1::TuneRequest request, grpc::ByteBuffer& reply)
      : context_(context),
        open_(std::move(open)),
        request_(std::move(request)),
        reply_bytes_(reply),
        wishes_{budget_of(request_), request_.retune(), [this] { refuse_to_go_on(context_, cancelled_); }} {}

  void start() {
    self_ = shared_from_this();
    after_first_agent(context_, [self = self_] { self->begin(); });
  }
  void OnCancel() override { cancelled_ = true; }
  void OnDone() override { self_.reset(); }

 private:
  void begin() {
    post([](PlanCall& call) {
      if (call.request_.has_verify() || call.request_.listed_size() > 0) {
        throw Error(ErrorCode::InvalidArgument, call.request_.has_verify() ? "verify" : "listed",
                    "has no plan: leave it out");
      }
      call.questions_ = questions_of(call.context_, call.request_);
      call.times_ = read_job_times(call.context_.store);
    });
  }

  void post(void (*work)(PlanCall&)) {
    context_.walks.post(open_->sharer(), [self = shared_from_this(), work] {
      const grpc::Status done = guarded([&] {
        refuse_to_go_on(self->context_, self->cancelled_);
        work(*self);
      });
      done.ok() ? self->next() : self->Finish(done);
    });
  }

  void next() {
    if (static_cast<std::size_t>(reply_.problems_size()) < questions_.size()) {
      post([](PlanCall& call) {
        const Question& question = call.questions_[static_cast<std::size_t>(call.reply_.problems_size())];
        plan(call.context_, question, call.wishes_, *call.times_, *call.reply_.add_problems());
      });
      return;
    }
    context_.jobs.post([self = shared_from_this()] {
      self->Finish(guarded([&] {
        add_open_jobs(self->context_.scheduler, self->questions_, self->reply_);
        self->reply_bytes_ = print_message(self->reply_);
        self->open_->hold_bytes(self->reply_bytes_.Length());
      }));
    });
  }

  ServiceContext& context_;
  const OpenCallPtr open_;
  const v1::TuneRequest request_;
  grpc::ByteBuffer& reply_bytes_;
  const PlanWishes wishes_;
  v1::PlanTuneReply reply_;
  std::atomic<bool> cancelled_{false};
  std::shared_ptr<PlanCall> self_;
  std::vector<Question> questions_;
  std::optional<JobTimes> times_;
};

}  // namespace

grpc::ServerUnaryReactor* plan_tune(ServiceContext& context, OpenCallPtr open, v1::TuneRequest request,
                                    grpc::ByteBuffer& reply) {
  const auto call = std::make_shared<PlanCall>(context, std::move(open), std::move(request), reply);
  call->start();
  return call.get();
}

}  // namespace cubind
