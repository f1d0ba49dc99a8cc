#include "server/service/check_call.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "server/convert/limits.hpp"
#include "server/convert/problem_check.hpp"
#include "server/convert/replies.hpp"
#include "server/service/caller.hpp"
#include "server/service/status.hpp"
#include "tuner/spec/space.hpp"
#include "tuner/spec/wire.hpp"

namespace cubind {
namespace {

constexpr std::size_t kMaxLog = 3000;
constexpr int kMaxCheckedProblems = 100;
/// The time for walks through the space, over all problems and architectures of a call: tables and listings
/// wait behind it.
constexpr std::uint64_t kMaxSteps = 20'000'000;

/// Shared memory that a block may ask for, by compute capability.
std::int64_t shared_optin(std::uint32_t capability) {
  const bool small = capability == 86 || capability == 89 || capability >= 120;
  return capability < 80 ? 65'536 : small ? 101'376 : capability < 90 ? 166'912 : 232'448;
}

/// What constraints may use of a device, where no device is named: those of a known class that runs the
/// architecture, else of a device with 132 SMs and the limits of its compute capability.
DeviceConstants constants_for(std::uint32_t capability, const std::vector<DeviceClass>& known,
                              std::string& label) {
  for (const DeviceClass& device : known) {
    if (device_constants(device.facts).cc == capability) {
      label = device.label;
      return device_constants(device.facts);
    }
  }
  const std::int64_t shared = shared_optin(capability);
  label = "a device of compute capability " + std::to_string(capability / 10) + "." +
          std::to_string(capability % 10) + " with 132 SMs and " + std::to_string(shared / 1024) +
          " KiB of shared memory";
  return {132, shared, 52'428'800, capability};
}

/// A problem to try a spec on where the caller gives none.
Problem some_problem(const KernelSpec& spec) {
  Problem problem;
  for (const DimSpec& dim : spec.dims) {
    problem.dims.push_back({dim.name, 4096});
  }
  for (const TypeSpec& type : spec.types) {
    problem.types.push_back({type.name, type.choices.front()});
  }
  problem.flags = spec.flags;
  return problem;
}

/// Throws what would end a job for the problem: an expression of a fill, a tolerance or the work that fails.
void evaluate_all(const KernelSpec& spec, const Problem& problem) {
  for (const ArgumentSpec& argument : spec.arguments) {
    spec.resolved_fill(argument, problem);
    if (is_output(argument)) {
      spec.bounds(argument, problem);
    }
  }
  spec.work_sizes(problem);
}

/// The first fault is the error's own, each other one has a line with its place.
Error to_error(const KernelSpec& spec, const std::vector<ArgumentFault>& faults) {
  std::string cause = faults.front().cause;
  for (std::size_t i = 1; i < faults.size(); ++i) {
    cause += "\n" + spec.file + " " + faults[i].pointer + ": " + faults[i].cause;
  }
  return {ErrorCode::InvalidArgument, spec.file + " " + faults.front().pointer, cut_utf8(cause, kMaxLog)};
}

}  // namespace

grpc::ServerUnaryReactor* CheckCall::start(ServiceContext& context, const grpc::CallbackServerContext& call,
                                           const v1::CheckKernelRequest& request,
                                           v1::CheckKernelReply& reply) {
  const std::shared_ptr<CheckCall> self(new CheckCall(context, caller_of(call), request, reply));
  self->self_ = self;
  context.background.post([self] {
    const grpc::Status status = guarded([&] { self->check(); });
    if (!status.ok()) {
      self->finish(status);
    }
  });
  return self.get();
}

void CheckCall::check() {
  refuse_while_draining(context_);
  parse();
  reply_.set_kernel(spec_->name);
  architectures_.assign(request_.architectures().begin(), request_.architectures().end());
  if (architectures_.empty()) {
    architectures_.emplace_back("sm_90");
  }
  check_count(static_cast<int>(architectures_.size()), kMaxArchitectures, "architectures");
  check_count(request_.problems_size(), kMaxCheckedProblems, "problems");
  warn_about_spec();
  for (int i = 0; i < request_.problems_size(); ++i) {
    const std::string field = "problems[" + std::to_string(i) + "]";
    check_problem(request_.problems(i), field);
    check_problem_of(*spec_, request_.problems(i), field);
    count(spec_->canonicalize(problem_from_wire(request_.problems(i), field), field));
  }
  if (request_.problems().empty()) {
    const Problem problem = some_problem(*spec_);
    reply_.add_warnings("no problem was given: tried on " + to_string(problem));
    count(problem);
  }
  compile();
}

void CheckCall::parse() {
  check_name(request_.file(), "file");
  check_count(request_.files_size(), kMaxSourceFiles, "files");
  v1::SpecBundle wire;
  wire.set_file(request_.file());
  wire.set_spec_json(request_.spec_json());
  *wire.mutable_files() = request_.files();
  spec_ = parse_kernel_spec(bundle_from_wire(wire));
}

void CheckCall::warn_about_spec() {
  for (const Tunable& tunable : spec_->tunables) {
    if (tunable.values.size() == 1) {
      reply_.add_warnings("/tunables/" + tunable.name + ": has one value, so it tunes nothing");
    }
  }
  if (spec_->work.min_read_bytes.empty()) {
    reply_.add_warnings(
        "/work/min_read_bytes: is missing, so a time that memory cannot allow is not refused");
  }
}

void CheckCall::go_on() {
  refuse_to_go_on(context_, cancelled_);
  steps_ += kBetweenInterrupts;
  if (steps_ > kMaxSteps) {
    throw Error(ErrorCode::ResourceExhausted, "problems[" + std::to_string(reply_.problems_size()) + "]",
                "more than " + std::to_string(kMaxSteps) +
                    " configurations were looked at by then: check fewer problems or architectures in one "
                    "call, or bind constraints to fewer tunables");
  }
}

void CheckCall::count(const Problem& problem) {
  evaluate_all(*spec_, problem);
  const Interrupt interrupt = [this] { go_on(); };
  const auto known = known_devices(*context_.fleet.agents(), *context_.index.snapshot());
  for (const std::string& architecture : architectures_) {
    refuse_to_go_on(context_, cancelled_);
    std::string label;
    // What is no architecture is for the compile worker to refuse.
    const std::uint32_t capability = compute_capability(architecture).value_or(90);
    const DeviceConstants constants = constants_for(capability, known, label);
    const SpaceSize size = count_valid(*spec_, problem, constants, interrupt);
    const auto first = default_configuration(*spec_, problem, constants, interrupt);
    if (architecture == architectures_.front()) {
      auto& report = *reply_.add_problems();
      to_wire(problem, *report.mutable_problem());
      report.set_valid(static_cast<std::uint32_t>(std::min<std::uint64_t>(size.valid, UINT32_MAX)));
      report.set_total(static_cast<std::uint32_t>(std::min<std::uint64_t>(size.total, UINT32_MAX)));
      if (first) {
        to_wire(*first, *report.mutable_first_default());
      }
      if (reply_.problems_size() == 1) {
        reply_.add_warnings("counted for " + label);
      }
    }
    if (!first) {
      reply_.add_warnings("no configuration is valid for " + to_string(problem) + " on " + label);
      continue;
    }
    if (std::ranges::find(spec_->defaults, *first) == spec_->defaults.end()) {
      reply_.add_warnings("/default: none of it is valid for " + to_string(problem) + " on " + label +
                          ", the first valid configuration is used instead: " + to_string(*first));
    }
    order(problem, *first, spec_->arch_features ? cubind::architecture(capability, true) : architecture);
  }
}

void CheckCall::order(const Problem& problem, const Configuration& configuration,
                      const std::string& architecture) {
  const Digest source =
      artifact_key(artifact_source(*spec_, problem, configuration, architecture), ToolchainIdentity{}).digest;
  if (ordered_.insert(source).second) {
    orders_.push_back({"", spec_->bundle, problem, configuration, architecture});
  }
}

void CheckCall::compile() {
  if (orders_.empty()) {
    finish(grpc::Status::OK);
    return;
  }
  context_.jobs.post([self = shared_from_this()] { self->submit_orders(); });
}

void CheckCall::submit_orders() {
  if (cancelled_) {
    finish({grpc::StatusCode::CANCELLED, "the caller withdrew"});
    return;
  }
  const auto self = shared_from_this();
  for (const CheckOrder& order : orders_) {
    checks_.push_back(context_.scheduler.check(
        order, caller_, [self, order](const CheckOutcome& outcome, const std::string& error) {
          self->compiled(order, outcome, error);
        }));
  }
}

void CheckCall::OnCancel() {
  cancelled_ = true;
  context_.jobs.post([self = shared_from_this()] {
    // Before its orders are submitted, the call sees by itself that its caller has gone.
    if (self->answered_ < self->checks_.size()) {
      self->context_.scheduler.drop_checks(self->checks_);
      self->answered_ = self->orders_.size();
      self->finish({grpc::StatusCode::CANCELLED, "the caller withdrew"});
    }
  });
}

void CheckCall::compiled(const CheckOrder& order, const CheckOutcome& outcome, const std::string& error) {
  if (!error.empty()) {
    reply_.add_warnings("not compiled: " + error);
  } else if (outcome.outcome != Outcome::Correct) {
    const std::string cause = "does not compile for " + order.architecture + " with " +
                              to_string(order.configuration) + ": " + cut_utf8(outcome.log, kMaxLog);
    failure_ = to_status(Error(ErrorCode::InvalidArgument, spec_->file + " /source", cause));
  } else if (!outcome.faults.empty()) {
    failure_ = to_status(to_error(*spec_, outcome.faults));
  } else {
    v1::ArtifactInfo& info = *reply_.add_compiled();
    to_wire(outcome.artifact, info);
    info.set_architecture(order.architecture);
    info.clear_key();
  }
  if (++answered_ == orders_.size()) {
    finish(failure_.value_or(grpc::Status::OK));
  }
}

void CheckCall::finish(const grpc::Status& status) { Finish(status); }

}  // namespace cubind
