#include "server/service/variant_call.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "server/answer/signed_records.hpp"
#include "server/convert/limits.hpp"
#include "server/convert/replies.hpp"
#include "server/defined_kernels.hpp"
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
  if (finished_) {
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
  // Names have no control characters, so no job of one namespace is one of another.
  const std::string& name_space = asked_.question.key.name_space;
  pinned_ = asked_.job.empty()
                ? nullptr
                : context_.pins.snapshot(name_space.empty() ? asked_.job : name_space + "\n" + asked_.job,
                                         asked_.locked);
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
  if (!context_.fleet.agents()->empty() || std::exchange(waited_for_agent_, true)) {
    return false;
  }
  waited_ = true;
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
  try {
    resolution_ =
        context_.answerer.resolve(asked_.question, *looked_up_in_, asked_.accepted, compile_wait_.failed());
  } catch (const Error& error) {
    if (error.code() == ErrorCode::Unavailable && !job_) {
      count_unanswered();
    }
    throw;
  }
}

void VariantCall::serve() {
  while (resolution_.compile && may_start_work()) {
    const auto self = shared_from_this();
    const CompileWait::Step step = compile_wait_.begin(asked_, resolution_,
                                                       {[self] { self->step([&] { self->serve_again(); }); },
                                                        [self] { self->step([&] { self->reply_now(); }); }});
    if (step == CompileWait::Step::Wait) {
      waited_ = true;
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
  v1::GetVariantReply reply;
  to_wire(*resolution_.answer, reply);
  if (job_) {
    reply.set_job_id(job_->job.id);
    reply.set_job_state(job_state_name(job_->job.state));
  }
  add_fingerprint(reply);
  reply.set_why(why());
  const auto blob = blob_of(*resolution_.answer);
  if (blob) {
    reply.mutable_artifact()->set_cubin_bytes(
        blob->cubin_bytes);  // the artifact's row has its own, unchecked
  }
  const auto cubin = blob && blob->zstd.size() <= kMaxInlineCubinBytes ? blob : nullptr;
  quality_ = quality_of(resolution_.answer->candidate.match, resolution_.answer->candidate.evidence);
  WireReply wire = to_wire_reply(reply, cubin.get());
  wire.quality = quality_;
  reply_ = assemble(wire.head, cubin);
  if (stays_the_answer(*resolution_.answer, cubin != nullptr)) {
    const KeptAs kept(open_->caller(), as_text(request_));
    context_.replies.keep(kept.key(), state_, wire, cubin);
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

void VariantCall::add_fingerprint(v1::GetVariantReply& reply) const {
  const ServedAnswer& answer = *resolution_.answer;
  if (!context_.signed_records || !answer.candidate.record || !answer.same_bytes_measured) {
    return;
  }
  if (const SignedLine* line = context_.signed_records->find(*answer.candidate.record)) {
    reply.set_fingerprint(line->line);
    reply.set_signature(line->signature.packed());
  }
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
bool VariantCall::stays_the_answer(const ServedAnswer& answer, bool has_cubin) const {
  return resolution_.hit && !resolution_.compile && !job_ && compile_wait_.failed().empty() &&
         asked_.job.empty() && !by_hint_ && (has_cubin || caller_has(answer.artifact.cubin));
}

bool VariantCall::caller_has(const Digest& cubin) const {
  return std::ranges::find(asked_.have, cubin) != asked_.have.end();
}

bool VariantCall::cubin_is_lost() {
  const Digest& cubin = resolution_.answer->artifact.cubin;
  // Once: a second loss is not a single fault of the disk.
  return !caller_has(cubin) && !context_.blobs.find(cubin) && !std::exchange(lost_cubin_, true);
}

std::shared_ptr<const CachedBlob> VariantCall::blob_of(const ServedAnswer& answer) const {
  const Digest& cubin = answer.artifact.cubin;
  if (caller_has(cubin)) {
    return nullptr;
  }
  auto blob = context_.blobs.find(cubin);
  if (!blob) {
    throw Error(ErrorCode::DataLoss, "cubin " + cubin.hex(), "is named by an artifact and is not stored");
  }
  return blob;
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
  if (!std::exchange(finished_, true)) {
    end_lend();
    const grpc::Status said = open_->ends_with(status);
    if (said.ok()) {
      context_.answers.answered(quality_, waited_ ? AnswerPath::Waited : AnswerPath::LookedUp,
                                context_.clock.steady_now() - begun_);
    } else {
      context_.answers.failed(said.error_code());
    }
    Finish(said);
  }
}

}  // namespace cubind
