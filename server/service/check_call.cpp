#include "server/service/check_call.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/text.hpp"
#include "plan/wire_fields.hpp"
#include "server/convert/limits.hpp"
#include "server/convert/problem_check.hpp"
#include "server/convert/replies.hpp"
#include "server/service/raw_message.hpp"
#include "server/service/status.hpp"
#include "tuner/spec/npy.hpp"
#include "tuner/spec/occupancy.hpp"
#include "tuner/spec/space.hpp"
#include "tuner/spec/space_thinning.hpp"
#include "tuner/spec/wire.hpp"

namespace cubind {
namespace {

constexpr std::size_t kMaxLog = 3000;
constexpr int kMaxCheckedProblems = 100;
/// The time for walks through the space, over all problems and architectures of a call: tables and listings
/// wait behind it.
constexpr std::uint64_t kMaxSteps = 20'000'000;

std::uint32_t capability_of(const std::string& architecture) {
  if (const auto capability = compute_capability(architecture)) {
    return *capability;
  }
  throw Error(ErrorCode::InvalidArgument, "architectures",
              quoted(architecture) + " is not an architecture: write sm_90 for compute capability 9.0");
}

/// A caller that names an architecture wants to see that it compiles.
void require_compiler(const AgentProfiles& agents, const ToolchainNeed& need) {
  if (current_toolchain(agents, need)) {
    return;
  }
  if (need.triton) {
    throw Error(ErrorCode::FailedPrecondition, "architectures", no_toolchain_because(need, agents));
  }
  std::set<std::string> known;
  for (const AgentProfile& agent : agents) {
    for (const OfferedToolchain& toolchain : agent.toolchains) {
      if (toolchain.is_triton()) {
        continue;
      }
      known.insert(toolchain.name + " compiles for " + join(toolchain.architectures, ", "));
    }
  }
  if (known.empty()) {
    throw Error(ErrorCode::Unavailable, "architectures", "no agent with a compiler is connected");
  }
  throw Error(ErrorCode::InvalidArgument, "architectures",
              quoted(need.architecture) + " cannot be compiled for: " + join(known, "; "));
}

/// The class whose limits count; absent: none was named, and agents offer none or several.
std::optional<DeviceClass> device_of(const v1::CheckKernelRequest& request, const AgentProfiles& agents,
                                     const IndexSnapshot& index) {
  if (!request.device().empty()) {
    return resolve_label(request.device(), agents, index, "device");
  }
  const std::map<Digest, DeviceClass> offered = offered_classes(agents);
  return offered.size() == 1 && request.architectures().empty() ? std::optional(offered.begin()->second)
                                                                : std::nullopt;
}

/// The limits where no device is named: those of a known class that runs the architecture, else of a device
/// with 132 SMs and the limits of its compute capability.
std::pair<DeviceConstants, std::string> limits_of(std::uint32_t capability,
                                                  const std::vector<DeviceClass>& known) {
  for (const DeviceClass& device : known) {
    if (device_constants(device.facts).cc == capability) {
      return {device_constants(device.facts), device.label};
    }
  }
  const auto shared = static_cast<std::int64_t>(shared_optin_bytes(capability));
  return {{132, shared, 52'428'800, capability},
          "a device of compute capability " + std::to_string(capability / 10) + "." +
              std::to_string(capability % 10) + " with 132 SMs and " + std::to_string(shared / 1024) +
              " KiB of shared memory"};
}

void to_wire(const Thinning& from, v1::CheckKernelReply::Thinning& to) {
  to.set_where(from.where);
  to.set_condition(from.condition);
  to.set_rejected(from.rejected);
  to.set_left(from.left);
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

/// Throws what would end a job for the problem: an expression of a fill, a tolerance or the work that fails,
/// and, for a problem that the caller gave, data of another size.
void evaluate_all(const KernelSpec& spec, const Problem& problem, bool is_given) {
  for (const ArgumentSpec& argument : spec.arguments) {
    spec.resolved_fill(argument, problem);
    if (argument.fill.kind == Fill::Kind::File && is_given) {
      spec.file_data(argument, problem);
    } else if (argument.fill.kind == Fill::Kind::File) {
      spec.check_file_type(argument, problem);
    }
    if (is_output(argument)) {
      spec.bounds(argument, problem);
    }
  }
  spec.work_sizes(problem);
}

/// The dynamic shared memory of the plan is added to what the compiler decided.
void add_shared(const KernelSpec& spec, const CheckOrder& order, v1::ArtifactInfo& artifact) {
  const auto source = artifact_source(spec, order.problem, order.configuration, order.needs.architecture);
  const PlanEvaluator evaluator(spec.plan_template(order.problem, order.configuration), order.problem,
                                order.configuration, order.constants);
  const LaunchPlan plan = evaluator.evaluate(order.problem, order.configuration).plan.value_or(LaunchPlan{});
  const auto entries = std::min<std::size_t>(source.entries.size(), artifact.entries().size());
  for (std::size_t i = 0; i < entries; ++i) {
    std::uint64_t most = 0;
    for (const Launch& launch : plan.launches) {
      most = launch.entry == source.entries[i] ? std::max(most, launch.shared_bytes) : most;
    }
    v1::EntryResources& entry = *artifact.mutable_entries(static_cast<int>(i));
    entry.set_launch_shared_bytes(entry.launch_shared_bytes() + static_cast<std::uint32_t>(most));
  }
}

/// The first fault is the error's own, each other one has a line with its place.
Error to_error(const KernelSpec& spec, const CheckOrder& order, const v1::CheckResult& result) {
  std::string cause;
  for (const v1::SpecFault& fault : result.faults()) {
    cause += (cause.empty() ? "" : "\n" + spec.file + " " + fault.pointer() + ": ") + fault.cause();
    if (fault.is_limit()) {
      cause += " (" + to_string(order.configuration) + " at " + to_string(order.problem) + ")";
    }
  }
  return {ErrorCode::InvalidArgument, spec.file + " " + result.faults(0).pointer(), cut_utf8(cause, kMaxLog)};
}

}  // namespace

grpc::ServerUnaryReactor* CheckCall::start(ServiceContext& context, OpenCallPtr open,
                                           v1::CheckKernelRequest request, grpc::ByteBuffer& reply) {
  const std::shared_ptr<CheckCall> self(new CheckCall(context, std::move(open), std::move(request), reply));
  self->self_ = self;
  context.walks.post(self->open_->sharer(), [self] {
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
  check_count(request_.problems_size(), kMaxCheckedProblems, "problems");
  choose_targets();
  warn_about_spec();
  for (int i = 0; i < request_.problems_size(); ++i) {
    const std::string field = element("problems", i);
    check_problem(request_.problems(i), field);
    check_problem_of(*spec_, request_.problems(i), field);
    count(spec_->canonicalize(problem_from_wire(request_.problems(i), field), field));
  }
  fail_without_problems();
  if (request_.problems().empty()) {
    const Problem problem = some_problem(*spec_);
    reply_.add_warnings("note: no problem was given: tried on " + to_string(problem));
    count_for_all(problem);
  }
  compile();
}

void CheckCall::choose_targets() {
  check_count(request_.architectures_size(), kMaxArchitectures, "architectures");
  const auto agents = context_.fleet.agents();
  const auto index = context_.index.snapshot();
  const std::optional<DeviceClass> device = device_of(request_, *agents, *index);
  std::vector<std::string> architectures(request_.architectures().begin(), request_.architectures().end());
  if (architectures.empty()) {
    architectures.push_back(device          ? architecture(device->facts, false)
                            : spec_->triton ? spec_->triton->architecture
                                            : "sm_90");
  }
  for (std::string& named : architectures) {
    const std::uint32_t capability = capability_of(named);
    check_architecture_of(*spec_, named, "architectures");
    auto [constants, label] = limits_of(capability, known_devices(*agents, *index));
    if (device) {
      constants = device_constants(device->facts);
      label = device->label;
    }
    if (spec_->arch_features) {
      named = architecture(capability, true);
    }
    if (!request_.architectures().empty()) {
      require_compiler(*agents, need_for(named));
    }
    targets_.push_back({constants, label, std::move(named)});
  }
}

void CheckCall::parse() {
  check_name(request_.file(), "file");
  check_count(request_.files_size(), kMaxSourceFiles, "files");
  v1::SpecBundle wire;
  wire.set_file(request_.file());
  wire.set_spec_json(request_.spec_json());
  *wire.mutable_files() = request_.files();
  spec_ = parse_kernel_spec(bundle_from_wire(wire));
  if (const std::string elsewhere = context_.kernels.judge(request_.file()); !elsewhere.empty()) {
    reply_.add_warnings("note: " + elsewhere);
  }
}

void CheckCall::warn_about_spec() {
  if (spec_->triton) {
    return;  // it has neither section, and one configuration is as good as any
  }
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
    throw Error(ErrorCode::ResourceExhausted, element("problems", reply_.problems_size()),
                "more than " + std::to_string(kMaxSteps) +
                    " configurations were looked at by then: check fewer problems or architectures in one "
                    "call, or bind constraints to fewer tunables");
  }
}

void CheckCall::count(const Problem& problem) {
  const int index = reply_.problems_size();
  try {
    count_for_all(problem);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::InvalidArgument) {
      throw;
    }
    auto& report = index < reply_.problems_size() ? *reply_.mutable_problems(index) : *reply_.add_problems();
    to_wire(problem, *report.mutable_problem());
    report.set_error(error.what());
    if (!fault_) {
      fault_.emplace(error);
    }
  }
}

void CheckCall::fail_without_problems() const {
  const auto& reports = reply_.problems();
  if (fault_ && std::ranges::all_of(reports, [](const auto& report) { return !report.error().empty(); })) {
    throw Error(*fault_);
  }
}

void CheckCall::count_for_all(const Problem& problem) {
  evaluate_all(*spec_, problem, !request_.problems().empty());
  for (const Target& target : targets_) {
    refuse_to_go_on(context_, cancelled_);
    if (&target == &targets_.front()) {
      count_for(problem, target);
    }
    order_default(problem, target);
  }
}

void CheckCall::count_for(const Problem& problem, const Target& target) {
  const Interrupt interrupt = [this] { go_on(); };
  const SpaceSize size = count_valid(*spec_, problem, target.constants, interrupt);
  const std::vector<Thinning> thinning = thin_out(*spec_, problem, target.constants, interrupt);
  auto& report = *reply_.add_problems();
  to_wire(problem, *report.mutable_problem());
  report.set_valid(size.valid);
  report.set_total(size.total);
  for (const Thinning& step : thinning) {
    to_wire(step, *report.add_thinning());
  }
  if (!size.exact) {
    reply_.add_warnings(
        "/constraints: tie too many tunables for the valid configurations to be counted: at " +
        to_string(problem) + " there are at most " + std::to_string(size.valid));
  }
  if (reply_.problems_size() == 1 && request_.device().empty()) {
    const char* const why = request_.architectures().empty() ? "no device was named: " : "";
    reply_.add_warnings("note: " + (why + ("counted for " + target.label)));
  }
}

void CheckCall::add_plan(const Problem& problem, const Configuration& configuration,
                         const DeviceConstants& constants) {
  const bool is_empty = std::ranges::any_of(problem.dims, [](const auto& dim) { return dim.value == 0; });
  const PlanEvaluator evaluator(spec_->plan_template(problem, configuration), problem, configuration,
                                constants);
  const PlanResult result = evaluator.evaluate(problem, configuration);
  if (result.plan) {
    to_wire(*result.plan, *reply_.mutable_problems(reply_.problems_size() - 1)->mutable_plan());
  }
  if (!is_empty && result.plan && result.plan->launches.empty()) {
    reply_.add_warnings("/launches: nothing is launched for " + to_string(problem) + " with " +
                        to_string(configuration) +
                        ": each grid has a zero, and a launch with a zero in its grid is left out");
  }
}

void CheckCall::order_default(const Problem& problem, const Target& target) {
  const auto first = default_configuration(*spec_, problem, target.constants, [this] { go_on(); });
  if (!first) {
    reply_.add_warnings("no configuration is valid for " + to_string(problem) + " on " + target.label);
    return;
  }
  if (&target == &targets_.front()) {
    to_wire(*first, *reply_.mutable_problems(reply_.problems_size() - 1)->mutable_first_default());
  }
  if (std::ranges::find(spec_->defaults, *first) == spec_->defaults.end()) {
    reply_.add_warnings("/default: none of it is valid for " + to_string(problem) + " on " + target.label +
                        ", the first valid configuration is used instead: " + to_string(*first));
  }
  if (&target == &targets_.front()) {
    add_plan(problem, *first, target.constants);
  }
  const ArtifactSource source = artifact_source(*spec_, problem, *first, target.architecture);
  if (ordered_.insert(artifact_key(source, ToolchainIdentity{}).digest).second) {
    orders_.push_back({"", spec_->bundle, problem, *first, need_for(target.architecture), target.constants});
  }
}

ToolchainNeed CheckCall::need_for(const std::string& architecture) const {
  return toolchain_need(*spec_, open_->is_foreign(), architecture);
}

void CheckCall::compile() {
  if (orders_.empty()) {
    finish(grpc::Status::OK);
    return;
  }
  context_.jobs.post([self = shared_from_this()] { self->submit_orders(); });
}

void CheckCall::submit_orders() {
  const grpc::Status goes_on = guarded([&] { refuse_to_go_on(context_, cancelled_); });
  if (!goes_on.ok()) {
    finish(goes_on);
    return;
  }
  const auto self = shared_from_this();
  for (std::size_t i = 0; i < orders_.size(); ++i) {
    checks_.push_back(context_.scheduler.check(
        orders_[i], open_->sharer(), [self, i](const v1::CheckResult& result, const std::string& error) {
          self->compiled(i, result, error);
        }));
  }
}

void CheckCall::OnCancel() {
  cancelled_ = true;
  context_.jobs.post([self = shared_from_this()] {
    // Before its orders are submitted, the call sees by itself that its caller has gone.
    if (self->answered_ < self->checks_.size()) {
      self->context_.scheduler.checks().drop(self->checks_);
      self->answered_ = self->orders_.size();
      self->finish({grpc::StatusCode::CANCELLED, "the caller withdrew"});
    }
  });
}

void CheckCall::compiled(std::size_t index, const v1::CheckResult& result, const std::string& error) {
  if (context_.draining) {
    failure_ = guarded([&] { refuse_while_draining(context_); });
  } else if (!error.empty()) {
    const CheckOrder& order = orders_[index];
    reply_.add_warnings("not compiled for " + order.needs.architecture + " with " +
                        to_string(order.configuration) + ": " + error);
  } else {
    default_compiled(orders_[index], result);
  }
  if (++answered_ == orders_.size()) {
    finish(failure_.value_or(grpc::Status::OK));
  }
}

void CheckCall::default_compiled(const CheckOrder& order, const v1::CheckResult& result) {
  if (result.outcome() != v1::CORRECT) {
    const std::string cause = "does not compile for " + order.needs.architecture + " with " +
                              to_string(order.configuration) + ": " + cut_utf8(result.log(), kMaxLog);
    failure_ = to_status(Error(ErrorCode::InvalidArgument,
                               spec_->file + (spec_->triton ? " /configurations" : " /source"), cause));
  } else if (!result.faults().empty()) {
    failure_ = to_status(to_error(*spec_, order, result));
  } else {
    v1::ArtifactInfo& info = *reply_.add_compiled();
    info = result.info();
    info.set_architecture(order.needs.architecture);
    reply_.mutable_writes()->MergeFrom(result.writes());
    add_shared(*spec_, order, info);
  }
}

void CheckCall::finish(grpc::Status status) {
  if (status.ok()) {
    status = guarded([&] {
      reply_bytes_ = print_message(reply_);
      open_->hold_bytes(reply_bytes_.Length());
    });
  }
  Finish(status);
}

}  // namespace cubind
