// What a VariantCall does if nothing acceptable was measured: the job that it starts, finds or waits for.
#include "base/error.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "server/convert/replies.hpp"
#include "server/service/miss_reason.hpp"
#include "server/service/variant_call.hpp"
#include "server/store/store.hpp"

namespace cubind {

bool VariantCall::measured_since() const {
  const auto newest = context_.index.snapshot();
  return newest != looked_up_in_ &&
         context_.answerer.resolve(asked_.question, *newest, asked_.accepted, compile_wait_.failed()).hit;
}

void VariantCall::on_miss() {
  if (asked_.lent && may_start_work()) {
    lend_ = context_.scheduler.lend(*asked_.lent);
  }
  if (asked_.locked) {
    refuse_changed_answers();
    no_job_because_ = "the question is locked to a generation, for which nothing is measured";
  } else if (!measured_since()) {
    start_job();
  } else if (!pinned_ || asked_.on_miss == OnMiss::Wait) {
    pinned_ = nullptr;  // what others of the job have waited for
    resolve();
  } else {
    no_job_because_ = "it was measured after the generation that the training job " + quoted(asked_.job) +
                      " has pinned; a caller that waits (on_miss=wait) gets it";
  }
  if (job_ && has_ended(job_->job.state)) {
    resolve();  // another daemon has measured it meanwhile
  }
  if (asked_.on_miss == OnMiss::Fail && !resolution_.hit) {
    const std::string job = job_ ? "; job " + job_->job.id + " is " + job_state_name(job_->job.state) : "";
    throw Error(ErrorCode::NotFound, "kernel " + asked_.question.key.kernel,
                "no acceptable record answers " + to_string(asked_.question.key.problem) + " on " +
                    asked_.question.device.label + best_there_is() + job);
  }
  if (asked_.on_miss == OnMiss::Wait && job_ && !ends_the_wait(*job_, lends_to_job())) {
    wait_for_job();
    return;
  }
  stop_waiting();
  serve();
}

std::string VariantCall::best_there_is() const {
  const auto known = context_.answerer.candidates(asked_.question, *looked_up_in_);
  const AnswerCandidate* best = known.empty() ? nullptr : &known.front();
  return ": " + shortfall_of(asked_.question, best) +
         (best && best->record ? "; accept=" + to_string(best->match) + " takes the best there is" : "");
}

bool VariantCall::lends_to_job() const {
  return context_.scheduler.lent().serves(lend_, asked_.question.key.device_class);
}

void VariantCall::start_job() {
  if (asked_.question.spec->is_compiled_only()) {
    return;
  }
  const auto candidates = context_.answerer.candidates(asked_.question, *context_.index.snapshot());
  const AnswerCandidate* best = candidates.empty() ? nullptr : &candidates.front();
  auto wish = job_wish(asked_.question, best, *context_.fleet.agents());
  job_ = wish ? context_.scheduler.find_open(wish->order.question) : std::nullopt;
  if (job_) {
    return;
  }
  if (!wish) {
    no_job_because_ = "no agent measures under the caller's driver, toolchain and power limit";
  } else if (!may_start_work()) {
    no_job_because_ = starts_nothing_because();
  } else if (!asked_.may_tune) {
    no_job_because_ = "the question starts no job (tune=never)";
  } else if (asked_.names_device && asked_.on_miss != OnMiss::Wait &&
             !context_.scheduler.may_find_device(wish->order.question.device_class)) {
    no_job_because_ = not_offered_because(asked_.question.device.label, *context_.fleet.agents()) +
                      "; `cubindctl tune --device " + asked_.question.device.label +
                      "` queues a job that waits for one";
  } else {
    wish->order.caller = open_->name();
    wish->order.awaited = asked_.on_miss == OnMiss::Wait;
    submit_job(*wish);
  }
  if (!job_) {
    const std::string shortfall = shortfall_of(asked_.question, best);
    no_job_because_ = shortfall + (shortfall.empty() ? "" : "; ") + no_job_because_;
    count_want(wish ? wish->order.question : asked_.question.key);
  }
}

void VariantCall::submit_job(const JobWish& wish) {
  const Digest key = job_key(wish.order.question);
  if (const auto failure = context_.scheduler.failed_lately(key, wish.order.for_bucket)) {
    no_job_because_ = "no job was started, the last one failed: " + *failure;
    return;
  }
  try {
    job_ = context_.scheduler.submit_tunes({wish.order}, wish.retune).front();
    open_->note_admitted();
  } catch (const Error& error) {
    // A full queue or disk does not prevent an answer.
    log_warning(std::string("a miss started no job: ") + error.what());
    no_job_because_ = std::string("no job could be started: ") + error.what();
  }
}

void VariantCall::count_want(const RecordQuestion& wanted) {
  if (!context_.store.read_only_reason()) {
    context_.store.write_behind(
        [wanted, now = context_.clock.wall_text()](StoreWriter& writer) { writer.count_want(wanted, now); });
  }
}

void VariantCall::wait_for_job() {
  const auto self = shared_from_this();
  watch_ = context_.scheduler.watch(job_->job.id, [self](const JobEvent& event) {
    if (!ends_the_wait(event, self->lends_to_job())) {
      return;
    }
    self->job_ = event;
    if (event.job.state == v1::Job::DONE) {
      self->pinned_ = nullptr;  // the outcome that it has waited for
    }
    self->stop_waiting();
    // Not within the queue's own call: the answer may submit a compile.
    self->context_.jobs.post([self] { self->step([&] { self->serve_again(); }); });
  });
  if (watch_ == 0) {
    serve();  // the job is over
    return;
  }
  path_ = AnswerPath::Waited;
  if (may_start_work()) {
    context_.scheduler.await(job_->job.id);  // moves it ahead of others
  }
}

}  // namespace cubind
