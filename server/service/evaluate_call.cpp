#include "server/service/evaluate_call.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "plan/judged_name.hpp"
#include "plan/wire.hpp"
#include "plan/wire_fields.hpp"
#include "server/convert/judged_kernel.hpp"
#include "server/convert/limits.hpp"
#include "server/convert/problem_check.hpp"
#include "server/defined_kernels.hpp"
#include "server/jobs/new_id.hpp"
#include "server/service/define_call.hpp"
#include "server/service/first_agent.hpp"
#include "server/service/raw_message.hpp"
#include "server/service/status.hpp"
#include "server/store/store.hpp"
#include "tuner/spec/space.hpp"
#include "tuner/spec/wire.hpp"

namespace cubind {
namespace {

constexpr int kMaxJudgedProblems = 16;
constexpr int kMaxAxes = 3;
constexpr std::size_t kMostOfTaskName = 40;  // a kernel's has at most 64
constexpr std::uint32_t kRounds = 30, kLeastRounds = 10, kMostRounds = 2000;
const std::string kTaskFile = "spec_json";  // for messages

std::vector<SourceFile> files_of(const google::protobuf::RepeatedPtrField<v1::SourceFile>& files) {
  v1::SpecBundle wire;
  *wire.mutable_files() = files;
  return bundle_from_wire(wire).files;
}

// The judged source, then its headers by their paths.
std::vector<SourceFile> judged_files(const google::protobuf::RepeatedPtrField<v1::SourceFile>& files) {
  std::vector<SourceFile> sorted = files_of(files);
  const auto source = std::ranges::find(sorted, files[0].path(), &SourceFile::path);
  std::rotate(sorted.begin(), source, source + 1);
  return sorted;
}

std::uint32_t rounds_of(const v1::EvaluateRequest& request) {
  const std::uint32_t rounds = request.rounds() == 0 ? kRounds : request.rounds();
  if (rounds < kLeastRounds || rounds > kMostRounds) {
    throw Error(ErrorCode::InvalidArgument, "rounds",
                std::to_string(rounds) + " is not between " + std::to_string(kLeastRounds) + " and " +
                    std::to_string(kMostRounds));
  }
  return rounds;
}

void check(const v1::EvaluateRequest& request) {
  if (request.files().empty()) {
    throw Error(ErrorCode::InvalidArgument, "files", "is empty: the first file is the judged source");
  }
  if (request.problems().empty()) {
    throw Error(ErrorCode::InvalidArgument, "problems", "is empty: give at least one problem");
  }
  check_count(request.problems_size(), kMaxJudgedProblems, "problems");
  check_count(request.files_size(), kMaxSourceFiles, "files");
  check_count(request.task_files_size(), kMaxSourceFiles, "task_files");
  check_count(request.grid_size(), kMaxAxes, "grid");
  check_count(request.block_size(), kMaxAxes, "block");
  check_text(request.namespace_(), "namespace");
  rounds_of(request);
}

}  // namespace

grpc::ServerUnaryReactor* EvaluateCall::start(ServiceContext& context, OpenCallPtr open,
                                              v1::EvaluateRequest request, grpc::ByteBuffer& reply) {
  const std::shared_ptr<EvaluateCall> self(
      new EvaluateCall(context, std::move(open), std::move(request), reply));
  self->self_ = self;
  after_first_agent(context, [self] { self->in_background(&EvaluateCall::prepare); });
  return self.get();
}

void EvaluateCall::in_background(void (EvaluateCall::*step)()) {
  const bool is_posted = context_.background.post(open_->sharer(), [self = shared_from_this(), step] {
    const grpc::Status status = guarded([&] {
      refuse_to_go_on(self->context_, self->left_);
      (self.get()->*step)();
    });
    if (!status.ok()) {
      self->context_.jobs.post([self, status] { self->finish(status); });
    }
  });
  if (!is_posted) {
    finish(to_status(Error(ErrorCode::Unavailable, "daemon", "is shutting down")));
  }
}

std::shared_ptr<const KernelSpec> EvaluateCall::read_task() {
  if (request_.spec_json().empty()) {
    check_name(request_.kernel(), "kernel");
    return context_.kernels.find(request_.kernel())->spec;
  }
  return parse_kernel_spec({kTaskFile, request_.spec_json(), files_of(request_.task_files())});
}

void EvaluateCall::prepare() {
  check(request_);
  const std::shared_ptr<const KernelSpec> task = read_task();
  if (open_->is_foreign()) {
    refuse_memory(*task);
  }
  files_ = {task->name, !request_.spec_json().empty(), task->bundle.files, judged_files(request_.files())};
  files_.task_files.insert(files_.task_files.begin(), {task->name + ".json", task->bundle.spec_json});
  const DeviceClass device = request_.has_device() ? context_.questions.device(request_.device(), "device")
                                                   : only_offered_device(*context_.fleet.agents(), "device");
  for (const v1::Problem& problem : request_.problems()) {
    refuse_to_go_on(context_, left_);
    define(*task, problem, device);
  }
  context_.jobs.post([self = shared_from_this()] { self->submit(); });
}

void EvaluateCall::define(const KernelSpec& task, const v1::Problem& problem, const DeviceClass& device) {
  const std::string field = element("problems", static_cast<int>(problems_.size()));
  check_problem(problem, field);
  check_problem_of(task, problem, field);
  const Problem canonical = task.canonicalize(problem_from_wire(problem, field), field);
  std::optional<Configuration> baseline =
      request_.has_baseline()
          ? task.canonicalize(configuration_from_wire(request_.baseline(), "baseline"), "baseline")
          : default_configuration(task, canonical, device_constants(device.facts));
  if (!baseline) {
    throw Error(ErrorCode::InvalidArgument, field, "no configuration of the task is valid: give a baseline");
  }
  const std::string name = std::string(kJudgedPrefix) + task.name.substr(0, kMostOfTaskName) + "_" + new_id();
  const JudgedLaunch launch{{request_.grid().begin(), request_.grid().end()},
                            {request_.block().begin(), request_.block().end()},
                            request_.shared_bytes()};
  const auto spec = judged_kernel(name, task, *baseline, files_.source_files, launch);
  for (const SourceFile& file : spec->bundle.files) {
    check_text(file.path, "files");
    if (!DefinedKernels::may_hold(file.path)) {
      throw Error(ErrorCode::InvalidArgument, "files", "a kernel has no file of the name " + file.path);
    }
  }
  context_.defined.add(*spec, open_->is_foreign());
  defined_.push_back(name);
  context_.kernels.reload();
  v1::TuneRequest question;
  question.set_kernel(name);
  *question.add_problems() = problem;
  question.mutable_device()->set_label(device.label);
  *question.mutable_policy() = request_.policy();
  question.set_namespace_(request_.namespace_());
  problems_.push_back(
      {context_.questions.read(question).front(), *std::move(baseline), request_.deterministic(), {}});
}

void EvaluateCall::submit() {
  const grpc::Status status = guarded([&] {
    refuse_to_go_on(context_, left_);
    std::vector<TuneOrder> orders;
    for (const JudgedProblem& one : problems_) {
      orders.push_back({.question = one.question.key,
                        .device = one.question.device,
                        .listed = {judged_configuration(one.baseline, false)},
                        .rounds = rounds_of(request_),
                        .untrusted = true,
                        .from_scratch = true,
                        .awaited = true,
                        .caller = open_->name()});
    }
    const std::vector<JobEvent> events = context_.scheduler.submit_tunes(orders, false);
    for (std::size_t i = 0; i < events.size(); ++i) {
      problems_[i].ended = events[i];
      watches_[events[i].job.id] = context_.scheduler.watch(
          events[i].job.id, [self = shared_from_this()](const JobEvent& next) { self->on_event(next); });
    }
    for (const JobEvent& event : events) {
      on_event(event);
    }
  });
  if (!status.ok()) {
    finish(status);
  }
}

void EvaluateCall::on_event(const JobEvent& event) {
  const auto watch = watches_.find(event.job.id);
  if (finished_ || watch == watches_.end()) {
    return;
  }
  if (event.daemon_stops) {
    finish(to_status(Error(ErrorCode::Unavailable, "daemon", "is shutting down: judge again then")));
    return;
  }
  if (event.job.state == v1::Job::NO_DEVICE) {
    finish(to_status(Error(ErrorCode::FailedPrecondition, "job " + event.job.id,
                           "no agent measures on " + event.device + " with a compiler for the source")));
    return;
  }
  if (!has_ended(event.job.state)) {
    return;
  }
  const auto problem =
      std::ranges::find(problems_, event.job.id, [](const JudgedProblem& one) { return one.ended.job.id; });
  problem->ended = event;
  context_.scheduler.unwatch(watch->second);
  watches_.erase(watch);
  if (watches_.empty()) {
    in_background(&EvaluateCall::conclude);
  }
}

void EvaluateCall::conclude() {
  OrderedJson verdict;
  context_.store.read([&](StoreReader& reader) { verdict = verdict_of(reader, files_, problems_); });
  v1::EvaluateReply reply;
  reply.set_outcome(verdict["outcome"].get<std::string>());
  reply.set_verdict_json(verdict.dump(1) + "\n");
  reply_ = print_message(reply);
  open_->hold_bytes(reply_.Length());
  context_.jobs.post([self = shared_from_this()] { self->finish(grpc::Status::OK); });
}

void EvaluateCall::tidy_up() {
  if (request_.keep() || defined_.empty()) {
    return;
  }
  RecordFilter filter;
  filter.kernels = defined_;
  context_.store.write([&](StoreWriter& writer) {
    for (const TrialRow& trial : writer.all_trials(filter)) {
      writer.forget_trial(trial);
    }
  });
  for (const std::string& name : defined_) {
    context_.defined.remove(name);
  }
  context_.kernels.reload();
}

void EvaluateCall::OnCancel() {
  left_ = true;
  context_.jobs.post([self = shared_from_this()] {
    self->finish({grpc::StatusCode::CANCELLED, "the caller withdrew"});
  });
}

void EvaluateCall::finish(const grpc::Status& status) {
  if (std::exchange(finished_, true)) {
    return;
  }
  for (const auto& [job, watch] : std::exchange(watches_, {})) {
    context_.scheduler.unwatch(watch);
    guarded([&] { context_.scheduler.cancel(job); });
  }
  const auto end = [self = shared_from_this(), status] {
    guarded([&] { self->tidy_up(); });
    self->Finish(self->open_->ends_with(status));
  };
  if (!context_.background.post(open_->sharer(), end)) {
    end();
  }
}

}  // namespace cubind
