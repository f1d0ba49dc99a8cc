#include "server/service/tune_call.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/text.hpp"
#include "server/answer/freshness.hpp"
#include "server/convert/lent_gpu.hpp"
#include "server/convert/replies.hpp"
#include "server/jobs/nominal_time.hpp"
#include "server/service/first_agent.hpp"
#include "server/service/job_list.hpp"
#include "server/service/measured_records.hpp"
#include "server/service/raw_message.hpp"
#include "server/service/status.hpp"
#include "server/service/wanted.hpp"
#include "server/store/store.hpp"
#include "tuner/spec/wire.hpp"

namespace cubind {
namespace {

constexpr std::size_t kSlice = 64;  // jobs

bool is_last(const v1::TuneEvent& event) { return event.job().state() >= v1::Job::DONE; }

/// Jobs are leased in the order in which they are submitted. A long one at the end would keep one GPU busy
/// while the others have nothing left to do. Searches with a budget begin with the best of larger problems.
void put_longest_first(std::vector<Question>& questions, const SearchBudget& budget) {
  const auto seconds = budget.said() ? nominal_seconds : nominal_job_seconds;
  std::ranges::stable_sort(questions, std::ranges::greater{}, [&](const Question& question) {
    return seconds(*question.spec, question.key.problem);
  });
}

std::optional<LentGpu> lent_by(const v1::TuneRequest& request) {
  if (!request.has_lent()) {
    return std::nullopt;
  }
  if (request.detach()) {
    throw Error(ErrorCode::InvalidArgument, "lent",
                "does not go with `detach`: a GPU is lent while the call waits");
  }
  return lent_gpu_from_wire(request.lent());
}

}  // namespace

std::shared_ptr<TuneCall> TuneCall::make(ServiceContext& context, OpenCallPtr open) {
  std::shared_ptr<TuneCall> self(new TuneCall(context, std::move(open)));
  self->self_ = self;
  return self;
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* TuneCall::tune(ServiceContext& context, OpenCallPtr open,
                                                           v1::TuneRequest request) {
  const auto self = make(context, std::move(open));
  self->detach_ = request.detach();
  const grpc::Status read = guarded([&] { self->lent_ = lent_by(request); });
  if (!read.ok()) {
    self->finish(read);
    return self.get();
  }
  after_first_agent(context, [self, request = std::make_shared<v1::TuneRequest>(std::move(request))] {
    self->context_.background.post(self->open_->sharer(),
                                   [self, request] { self->look_for_fresh(*request); });
  });
  return self.get();
}

std::vector<TuneCall::Asked> TuneCall::tunings(const v1::TuneRequest& request,
                                               std::vector<RecordQuestion>& fresh) {
  const SearchBudget budget = budget_of(request);
  std::vector<Question> questions = questions_of(context_, request);
  if (!request.has_wanted()) {
    put_longest_first(questions, budget);
  }
  const auto snapshot = context_.index.snapshot();
  const bool anew = request.retune() || request.from_scratch() || request.listed_size() > 0;
  std::vector<Asked> asked;
  for (const Question& question : questions) {
    refuse_to_go_on(context_, left_);
    auto settled = anew ? std::nullopt : settled_answer(question, budget, context_.answerer, *snapshot);
    if (settled) {
      fresh.push_back(question.key);
    }
    // A wanted problem stands for a miss, so it may shrink to fit like a miss's job.
    const bool for_bucket = request.has_wanted() && stands_for_bucket(question, context_.answerer, *snapshot);
    asked.push_back({.question = question,
                     .fresh = std::move(settled),
                     .for_bucket = for_bucket,
                     .budget = budget,
                     .before = nullptr,
                     .listed = listed_of(request, *question.spec),
                     .rounds = request.rounds(),
                     .from_scratch = request.from_scratch()});
  }
  return asked;
}

std::vector<TuneCall::Asked> TuneCall::verifications(const v1::TuneRequest& request) {
  context_.kernels.reload();
  std::vector<Asked> asked;
  for (MeasuredRecord& one : measured_records(context_, record_wishes_of(context_, request))) {
    asked.push_back({.question = std::move(one.question),
                     .before = std::move(one.record),
                     .listed = std::move(one.best)});
  }
  if (asked.empty() && request.problems_size() > 0) {
    throw Error(ErrorCode::NotFound, "problems",
                std::string("no ") + (request.verify().all() ? "" : "stale ") +
                    "record of them was measured here on a device that is offered now, by an agent that "
                    "compiles the kernel");
  }
  return asked;
}

void TuneCall::look_for_fresh(const v1::TuneRequest& request) {
  const bool retune = request.retune() || request.has_verify() || request.listed_size() > 0;
  std::vector<Asked> asked;
  std::vector<RecordQuestion> fresh;
  const grpc::Status looked = guarded([&] {
    refuse_while_draining(context_);
    refuse_to_go_on(context_, left_);
    asked = request.has_verify() ? verifications(request) : tunings(request, fresh);
  });
  if (!fresh.empty() && !context_.store.read_only_reason()) {
    context_.store.write_behind([fresh = std::move(fresh)](StoreWriter& writer) {
      std::ranges::for_each(fresh, [&](const RecordQuestion& question) { writer.drop_want(question); });
    });
  }
  const auto all = std::make_shared<const std::vector<Asked>>(std::move(asked));
  context_.jobs.post([self = shared_from_this(), looked, all, retune] {
    if (!looked.ok()) {
      self->finish(looked);
      return;
    }
    if (self->lent_ && !self->finished_) {
      self->lend_ = self->context_.scheduler.lend(*self->lent_);
    }
    self->submit_slice(all, 0, retune);
  });
}

void TuneCall::submit_slice(std::shared_ptr<const std::vector<Asked>> asked, std::size_t first, bool retune) {
  if (finished_ || left_) {
    submitting_ = false;
    return;
  }
  const std::size_t end = std::min(first + kSlice, asked->size());
  submitting_ = end < asked->size();
  const grpc::Status submitted = guarded([&] {
    std::vector<TuneOrder> orders;
    for (std::size_t i = first; i < end; ++i) {
      if (const Asked& one = (*asked)[i]; !one.fresh) {
        orders.push_back({.question = one.question.key,
                          .device = one.question.device,
                          .for_bucket = one.for_bucket,
                          .budget = one.budget,
                          .listed = one.listed,
                          .rounds = one.rounds,
                          .from_scratch = one.from_scratch,
                          .awaited = !detach_,
                          .caller = open_->name()});
      }
    }
    const std::vector<JobEvent> jobs = context_.scheduler.submit_tunes(orders, retune);
    auto job = jobs.begin();
    for (std::size_t i = first; i < end; ++i) {
      if (const Asked& one = (*asked)[i]; one.fresh) {
        send_fresh(one.question, *one.fresh);
      } else {
        remember(job->job.id, one.question.device.label, one.before);
        follow(*job++);
      }
    }
  });
  if (!submitted.ok()) {
    finish(submitted);
    return;
  }
  if (submitting_) {
    context_.jobs.post([self = shared_from_this(), asked = std::move(asked), end, retune] {
      self->submit_slice(asked, end, retune);
    });
  }
  write_next();
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* TuneCall::watch(ServiceContext& context, OpenCallPtr open,
                                                            const v1::WatchJobRequest& request) {
  const auto self = make(context, std::move(open));
  context.jobs.post([self, id = request.id()] {
    const grpc::Status status = guarded([&] { self->watch_job(id); });
    if (!status.ok()) {
      self->finish(status);
    }
    self->write_next();
  });
  return self.get();
}

void TuneCall::follow(const JobEvent& job) {
  v1::TuneEvent event;
  to_wire(job, context_.index.snapshot()->generation(), event);
  send(std::move(event));
  if (detach_ || finished_ || has_ended(job.job.state) || watches_.contains(job.job.id)) {
    return;
  }
  const auto self = shared_from_this();
  const std::uint64_t watch =
      context_.scheduler.watch(job.job.id, [self](const JobEvent& next) { self->on_event(next); });
  if (watch != 0) {
    if (hastens_) {
      context_.scheduler.await(job.job.id);
    }
    watches_[job.job.id] = watch;
  }
}

void TuneCall::remember(const std::string& job, const std::string& device, const RecordPtr& before) {
  if (!before) {
    return;
  }
  JobEvent event;
  event.device = device;
  event.record = before;
  v1::TuneEvent wire;
  to_wire(event, context_.index.snapshot()->generation(), wire);
  *before_[job].mutable_winner() = wire.winner();
  *before_[job].mutable_provenance() = wire.provenance();
  to_wire(before->question.policy, *before_[job].mutable_policy());
}

void TuneCall::watch_job(const std::string& id) {
  hastens_ = may(open_->caller(), Call::Tune);
  JobEvent job = find_job(context_, *open_, id);
  if (has_ended(job.job.state)) {
    send_ended(std::move(job));
  } else {
    follow(job);
  }
}

void TuneCall::send_ended(JobEvent ended) {
  const std::string& id = ended.job.id;
  const auto snapshot = context_.index.snapshot();
  if (const ClassRecords* records = snapshot->records(ended.job.question)) {
    const auto& all = records->records;
    const auto made =
        std::ranges::find_if(all, [&](const RecordPtr& record) { return record->job_id == id; });
    ended.record = made == all.end() ? nullptr : *made;
  }
  v1::TuneEvent event;
  to_wire(ended, snapshot->generation(), event);
  send(std::move(event));
}

void TuneCall::on_event(const JobEvent& event) {
  if (finished_) {
    return;
  }
  if (event.daemon_stops) {
    finish(to_status(daemon_stops(event.job.id)));
    return;
  }
  v1::TuneEvent wire;
  to_wire(event, context_.index.snapshot()->generation(), wire);
  if (has_ended(event.job.state)) {
    watches_.erase(event.job.id);
  }
  send(std::move(wire));
  write_next();
}

void TuneCall::send_fresh(const Question& question, const AnswerCandidate& winner) {
  JobEvent event;
  event.job.question = question.key;
  event.job.state = v1::Job::DONE;
  event.device = question.device.label;
  event.record = winner.record;
  v1::TuneEvent wire;
  to_wire(event, context_.index.snapshot()->generation(), wire);
  wire.set_already_fresh(true);
  send(std::move(wire));
}

void TuneCall::send(v1::TuneEvent event) {
  if (const auto before = before_.find(event.job().id()); before != before_.end()) {
    *event.mutable_before() = before->second;
  }
  const auto same = std::ranges::find_if(waiting_, [&](const v1::TuneEvent& older) {
    return !event.job().id().empty() && older.job().id() == event.job().id() && !is_last(older);
  });
  if (same != waiting_.end()) {
    *same = std::move(event);
  } else {
    waiting_.push_back(std::move(event));
  }
}

void TuneCall::write_next() {
  if (is_writing_ || finished_) {
    return;
  }
  if (waiting_.empty()) {
    if (watches_.empty() && !submitting_) {
      finish(grpc::Status::OK);
    }
    return;
  }
  writing_ = print_message(waiting_.front());
  waiting_.pop_front();
  is_writing_ = true;
  StartWrite(&writing_);
}

void TuneCall::OnWriteDone(bool ok) {
  context_.jobs.post([self = shared_from_this(), ok] {
    self->is_writing_ = false;
    if (ok) {
      self->write_next();
    } else {
      self->finish({grpc::StatusCode::CANCELLED, "the caller went away"});
    }
  });
}

void TuneCall::OnCancel() {
  left_ = true;
  context_.jobs.post([self = shared_from_this()] {
    self->finish({grpc::StatusCode::CANCELLED, "the caller withdrew"});
  });
}

void TuneCall::finish(const grpc::Status& status) {
  if (std::exchange(finished_, true)) {
    return;
  }
  for (const auto& [job, watch] : watches_) {
    context_.scheduler.unwatch(watch);
  }
  watches_.clear();
  context_.scheduler.end_lend(lend_);
  Finish(open_->ends_with(status));
}

}  // namespace cubind
