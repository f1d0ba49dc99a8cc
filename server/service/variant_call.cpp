#include "server/service/variant_call.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "plan/wire.hpp"
#include "server/answer/signed_records.hpp"
#include "server/convert/limits.hpp"
#include "server/convert/replies.hpp"
#include "server/defined_kernels.hpp"
#include "server/lookup/pinned_job.hpp"
#include "server/service/admission.hpp"
#include "server/service/first_agent.hpp"
#include "server/service/known_answer.hpp"
#include "server/service/miss_reason.hpp"
#include "server/service/no_answer.hpp"
#include "server/service/status.hpp"
#include "tuner/spec/space.hpp"
#include "tuner/spec/space_thinning.hpp"

namespace cubind {
namespace {

constexpr const char* kIsReader =
    "the caller is a reader, for whom nothing is compiled or tuned: a token of a tuner is needed";
constexpr const char* kIsSealed =
    "the program is sealed: nothing is compiled or tuned for it. Tune the problem before "
    "(`cubindctl tune`), or ask for it before the program is sealed";
constexpr const char* kDaemonIsSealed =
    "the daemon is sealed: questions start no compile and no job. `cubindctl tune` does";
constexpr const char* kIsBundle =
    "the daemon serves a signed bundle, for which nothing is compiled or tuned: ask the bundle's issuer "
    "for a newer one";

// Namespaces do not believe each other's hints.
std::string hint_key(const v1::GetVariantRequest& request) {
  return Digest::of(request.namespace_() + "\n" + request.hint()).hex();
}

bool caller_has(const VariantQuestion& asked, const Digest& cubin) {
  return std::ranges::find(asked.have, cubin) != asked.have.end();
}

/// If the measured cubin of the bundle's record answers.
void add_fingerprint(const SignedRecords* records, const ServedAnswer& answer, v1::GetVariantReply& reply) {
  if (records == nullptr || !answer.candidate.record || !answer.same_bytes_measured) {
    return;
  }
  if (const SignedLine* line = records->find(*answer.candidate.record)) {
    reply.set_fingerprint(line->line);
    reply.set_signature(line->signature.packed());
  }
}

/// Null: the caller has the cubin.
std::shared_ptr<const CachedBlob> blob_of(const ServiceContext& context, const VariantQuestion& asked,
                                          const Digest& cubin) {
  if (caller_has(asked, cubin)) {
    return nullptr;
  }
  auto blob = context.blobs.find(cubin);
  if (!blob) {
    throw Error(ErrorCode::DataLoss, "cubin " + cubin.hex(), "is named by an artifact and is not stored");
  }
  return blob;
}

/// Whole milliseconds; below one they count as one.
std::uint32_t whole_ms(double ms) {
  return ms > 0 ? static_cast<std::uint32_t>(std::clamp(ms, 1.0, 4e9)) : 0;
}

/// Each process is counted once for an artifact: it names the cubins that it has. One whose misses start
/// nothing only looks.
SparedWork spared_work(ServiceContext& context, const VariantQuestion& asked, const ServedAnswer& answer) {
  const auto& record = answer.candidate.record;
  return {.is_new = (asked.may_tune || asked.is_sealed) && !caller_has(asked, answer.artifact.cubin),
          .compile_ms = whole_ms(answer.artifact.compile_ms),
          .tuning_ms = record ? whole_ms(context.saved.tuning_ms(record->job_id)) : 0};
}

struct VariantReply {
  WireReply wire;
  std::shared_ptr<const CachedBlob> cubin;  // at the end; null: the caller has it, or asks GetArtifact for it
};

/// `job`: that the miss started or met. `why`: why nothing better answers.
VariantReply make_reply(ServiceContext& context, const VariantQuestion& asked, const ServedAnswer& answer,
                        const std::optional<JobEvent>& job, const std::string& why) {
  v1::GetVariantReply reply;
  to_wire(answer, reply);
  if (asked.with_plan) {
    to_wire(answer.plan, *reply.mutable_plan());
  }
  if (job) {
    reply.set_job_id(job->job.id);
    reply.set_job_state(job_state_name(job->job.state));
  }
  add_fingerprint(context.signed_records, answer, reply);
  reply.set_why(why);
  const auto blob = blob_of(context, asked, answer.artifact.cubin);
  if (blob) {
    // The artifact's row has its own, unchecked.
    reply.mutable_artifact()->set_cubin_bytes(blob->cubin_bytes);
  }
  const auto cubin = blob && blob->zstd.size() <= kMaxInlineCubinBytes ? blob : nullptr;
  WireReply wire = to_wire_reply(reply, cubin.get());
  wire.quality = quality_of(answer.candidate.match, answer.candidate.evidence);
  wire.quality.spared = spared_work(context, asked, answer);
  return {std::move(wire), cubin};
}

}  // namespace

VariantCall::VariantCall(ServiceContext& context, OpenCallPtr open, const grpc::CallbackServerContext& call,
                         grpc::Slice request, grpc::ByteBuffer& reply, Time begun)
    : context_(context),
      open_(std::move(open)),
      request_(std::move(request)),
      reply_(reply),
      begun_(begun),
      request_id_(current_request()),
      compile_wait_(context, open_->name(), call.deadline()) {}

grpc::ServerUnaryReactor* VariantCall::start(ServiceContext& context, OpenCallPtr open,
                                             const grpc::CallbackServerContext& call,
                                             const grpc::ByteBuffer& request, grpc::ByteBuffer& reply) {
  const Time begun = context.clock.steady_now();
  grpc::Slice bytes;
  if (!request.TrySingleSlice(&bytes).ok() && !request.DumpToSingleSlice(&bytes).ok()) {
    bytes = grpc::Slice();
  }
  std::optional<AnswerQuality> answered;
  const KeptAs kept(open->caller(), as_text(bytes));
  const grpc::Status status = guarded([&] { answered = answer_again(context, kept.key(), reply); });
  if (answered || !status.ok()) {
    if (answered) {
      context.answers.answered(*answered, AnswerPath::Repeated, context.clock.steady_now() - begun);
    } else {
      context.answers.failed(status.error_code());
    }
    return new EndedCall<grpc::ServerUnaryReactor>(status, std::move(open));
  }
  const std::shared_ptr<VariantCall> self(
      new VariantCall(context, std::move(open), call, std::move(bytes), reply, begun));
  self->self_ = self;
  self->step([&] { self->begin(); });
  return self.get();
}

void VariantCall::step(const std::function<void()>& body) {
  if (phase_ == Phase::Finished) {
    return;
  }
  const RequestScope scope(request_id_);
  const grpc::Status status = guarded(body);
  if (!status.ok()) {
    finish(status);
  }
}

void VariantCall::begin() {
  refuse_while_draining(context_);
  v1::GetVariantRequest request;
  if (!request.ParseFromArray(request_.begin(), static_cast<int>(request_.size()))) {
    throw Error(ErrorCode::InvalidArgument, "request",
                "is not a GetVariantRequest in protobuf's wire format");
  }
  open_->set_namespace(request.namespace_());
  open_->require_namespace(request.namespace_());
  state_ = reply_state(context_);
  by_hint_ = resolve_hint(request);
  try {
    asked_ = context_.questions.read(request);
  } catch (const Error& error) {
    // An agent that is starting may bring the class of this label.
    if (error.where() != "device.label" || !begin_with_an_agent()) {
      throw;
    }
    return;
  }
  context_.defined.asked(asked_.question.key.kernel);
  if (!by_hint_ && !request.hint().empty() && may_start_work()) {
    context_.defined.hinted(asked_.question.key.kernel, hint_key(request));
    open_->note_admitted();
  }
  const PinnedJob job{asked_.question.key.name_space, asked_.job};
  pinned_ = job.name.empty() ? nullptr : context_.pins.snapshot(job.key(), asked_.locked, open_->process());
  resolve();
  if (!resolution_.hit && asked_.on_miss == OnMiss::Wait && begin_with_an_agent()) {
    return;
  }
  ++(resolution_.hit ? context_.hits : context_.misses);
  if (resolution_.hit && resolution_.answer && !resolution_.compile) {
    reply_now();
    return;
  }
  const auto self = shared_from_this();
  if (needs_walk()) {
    context_.walks.post(open_->sharer(), [self] { self->find_fallback(); });
    return;
  }
  context_.jobs.post(
      [self] { self->step([&] { self->resolution_.hit ? self->serve() : self->on_miss(); }); });
}

bool VariantCall::resolve_hint(v1::GetVariantRequest& request) const {
  check_text(request.hint(), "hint", kMaxHintBytes);
  if (request.hint().empty() || !request.kernel().empty()) {
    return false;
  }
  request.set_kernel(context_.defined.find(hint_key(request)));
  if (request.kernel().empty()) {
    throw Error(ErrorCode::NotFound, "hint " + request.hint(),
                "no defined kernel has it: ask by the kernel's name, and give the hint with it");
  }
  return true;
}

bool VariantCall::begin_with_an_agent() {
  if (!context_.fleet.agents()->empty() || phase_ != Phase::Begun) {
    return false;
  }
  phase_ = Phase::AgentAwaited;
  path_ = AnswerPath::Waited;
  after_first_agent(context_, [self = shared_from_this()] { self->step([&] { self->begin(); }); });
  return true;
}

bool VariantCall::needs_walk() const {
  return !resolution_.hit && !asked_.locked && asked_.on_miss != OnMiss::Fail &&
         !valid_default(asked_.question);
}

void VariantCall::find_fallback() {
  const Question& question = asked_.question;
  const Interrupt interrupt = [&] { refuse_to_go_on(context_, cancelled_); };
  std::optional<Configuration> found;
  std::string leaves_none;
  const grpc::Status walked = guarded([&] {
    refuse_to_go_on(context_, cancelled_);
    const DeviceConstants constants = device_constants(question.device.facts);
    found = default_configuration(*question.spec, question.key.problem, constants, interrupt);
    if (!found) {
      leaves_none = what_leaves_none(*question.spec, question.key.problem, constants, interrupt);
    }
  });
  context_.jobs.post([self = shared_from_this(), walked, found, leaves_none] {
    if (!walked.ok()) {
      self->finish(walked);
      return;
    }
    self->step([&] {
      self->asked_.question.fallback = found;
      self->leaves_none_ = leaves_none;
      self->resolve();
      self->on_miss();
    });
  });
}

void VariantCall::resolve() {
  looked_up_in_ = pinned_ ? pinned_ : context_.index.snapshot();
  resolution_ =
      context_.answerer.resolve(asked_.question, *looked_up_in_, asked_.accepted, compile_wait_.failed());
}

void VariantCall::serve() {
  while (resolution_.compile && may_start_work()) {
    const auto self = shared_from_this();
    const CompileWait::Step step = compile_wait_.begin(asked_, resolution_,
                                                       {[self] { self->step([&] { self->serve_again(); }); },
                                                        [self] { self->step([&] { self->reply_now(); }); }});
    if (step == CompileWait::Step::Wait) {
      path_ = AnswerPath::Waited;
      return;
    }
    if (step == CompileWait::Step::Answer) {
      break;
    }
    resolve();
  }
  reply_now();
}

void VariantCall::serve_again() {
  if (context_.draining && !(job_ && has_ended(job_->job.state))) {
    throw daemon_stops(job_ ? job_->job.id : compile_wait_.attempts().job);
  }
  resolve();
  serve();
}

void VariantCall::stop_waiting() {
  context_.scheduler.unwatch(watch_);
  watch_ = 0;
  end_lend();
  compile_wait_.stop();
}

void VariantCall::reply_now() {
  refuse_changed_answers();
  if (!resolution_.answer) {
    throw_no_answer(asked_.question, resolution_, *context_.fleet.agents(), attempts(), leaves_none_, why());
  }
  if (cubin_is_lost()) {
    resolve();  // finds another artifact, or one to compile
    context_.jobs.post([self = shared_from_this()] { self->step([&] { self->serve(); }); });
    return;
  }
  const VariantReply reply = make_reply(context_, asked_, *resolution_.answer, job_, why());
  quality_ = reply.wire.quality;
  reply_ = assemble(reply.wire.head, reply.cubin);
  if (stays_the_answer(resolution_.answer->artifact.cubin, reply.cubin != nullptr)) {
    const KeptAs kept(open_->caller(), as_text(request_));
    context_.replies.keep(kept.key(), state_, reply.wire, reply.cubin);
  }
  finish(grpc::Status::OK);
}

void VariantCall::refuse_changed_answers() {
  if (!asked_.locked || resolution_.answer || resolution_.compile) {
    return;
  }
  Question unlocked = asked_.question;
  unlocked.is_locked = false;
  throw_not_unchanged_because(context_.answerer.candidates(unlocked, *pinned_), asked_.question,
                              asked_.locked->number);
}

const char* VariantCall::starts_nothing_because() const {
  if (context_.signed_records) {
    return kIsBundle;
  }
  if (!open_->caller().roles.includes(CallerRole::Tuner)) {
    return kIsReader;
  }
  return asked_.is_sealed ? kIsSealed : context_.sealed ? kDaemonIsSealed : nullptr;
}

CompileAttempts VariantCall::attempts() const {
  return may_start_work() || !resolution_.compile
             ? compile_wait_.attempts()
             : CompileAttempts{.job = "", .error = "", .barred = starts_nothing_because()};
}

std::string VariantCall::why() const {
  std::string job = job_ ? obstacle_of(*job_, *context_.fleet.agents()) : no_job_because_;
  if (!job.empty() && !resolution_.outdated) {
    return job;
  }
  const std::string compile = obstacle_of(attempts(), resolution_);
  return job + (job.empty() || compile.empty() ? "" : "; ") + compile;
}

// A repeated question is looked up again in five cases: the answer started a job or a compile; a better one
// failed to compile and may be tried again; the question keeps a training job's pin alive; its hint may have
// been given for another kernel; or the reply leaves the cubin to GetArtifact, and each question checks that
// the cubin is still there.
bool VariantCall::stays_the_answer(const Digest& cubin, bool has_cubin) const {
  return resolution_.hit && !resolution_.compile && !job_ && compile_wait_.failed().empty() &&
         asked_.job.empty() && !by_hint_ && (has_cubin || caller_has(asked_, cubin));
}

bool VariantCall::cubin_is_lost() {
  const Digest& cubin = resolution_.answer->artifact.cubin;
  if (phase_ == Phase::CubinLost || caller_has(asked_, cubin) || context_.blobs.find(cubin)) {
    return false;
  }
  phase_ = Phase::CubinLost;
  return true;
}

void VariantCall::OnCancel() {
  cancelled_ = true;
  context_.jobs.post([self = shared_from_this()] {
    self->stop_waiting();
    self->finish({grpc::StatusCode::CANCELLED, "the caller withdrew"});
  });
}

void VariantCall::end_lend() { context_.scheduler.end_lend(std::exchange(lend_, 0)); }

void VariantCall::finish(const grpc::Status& status) {
  if (std::exchange(phase_, Phase::Finished) != Phase::Finished) {
    end_lend();
    const grpc::Status said = open_->ends_with(status);
    if (said.ok()) {
      context_.answers.answered(quality_, path_, context_.clock.steady_now() - begun_);
    } else {
      context_.answers.failed(said.error_code());
    }
    Finish(said);
  }
}

}  // namespace cubind
