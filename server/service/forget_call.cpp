#include "server/service/forget_call.hpp"

#include <algorithm>
#include <map>

#include "base/error.hpp"
#include "base/text.hpp"
#include "plan/answer_wire.hpp"
#include "plan/wire.hpp"
#include "plan/wire_fields.hpp"
#include "server/convert/limits.hpp"
#include "server/convert/problem_check.hpp"
#include "server/store/store.hpp"

namespace cubind {
namespace {

/// Throws InvalidArgument for a tunable that the kernel does not have.
std::vector<NamedValue> asked_values(const KernelSpec& spec, const v1::Configuration& wire) {
  check_count(wire.values_size(), kMaxNames, "configuration.values");
  const Configuration asked = configuration_from_wire(wire, "configuration");
  std::vector<std::string> names;
  for (const Tunable& tunable : spec.tunables) {
    names.push_back(tunable.name);
  }
  for (const NamedValue& value : asked.values) {
    if (std::ranges::count(names, value.name) == 0) {
      throw Error(ErrorCode::InvalidArgument, "configuration",
                  quoted(value.name) + " is not a tunable of " + spec.name + suggestion(value.name, names));
    }
  }
  return asked.values;
}

/// A problem, and the one that was measured for its bucket.
void add_problem(const KernelSpec& spec, const v1::Problem& wire, const std::string& field,
                 std::vector<Problem>& problems) {
  check_problem(wire, field);
  check_problem_of(spec, wire, field);
  const Problem problem = spec.canonicalize(problem_from_wire(wire, field), field);
  problems.push_back(problem);
  problems.push_back(spec.representative(problem));
}

/// Without one in the question it is the one that agents offer. An unknown kernel is the first error.
DeviceClass device_of(ServiceContext& context, const v1::ForgetFaultsRequest& request) {
  if (request.has_device()) {
    return context.questions.device(request.device(), "device");
  }
  const auto agents = context.fleet.agents();
  if (!request.kernel().empty() && offered_classes(*agents).size() != 1) {
    context.kernels.find(request.kernel());
  }
  return only_offered_device(*agents, "device");
}

FaultFilter filter_of(ServiceContext& context, const v1::ForgetFaultsRequest& request,
                      const DeviceClass& device) {
  check_text(request.kernel(), "kernel");
  check_count(request.problems_size(), kMaxProblems, "problems");
  FaultFilter filter;
  filter.device_class = device.digest;
  filter.kernel = request.kernel();
  if (request.problems().empty() && !request.has_configuration()) {
    return filter;
  }
  if (request.kernel().empty()) {
    throw Error(ErrorCode::InvalidArgument, "kernel",
                "is empty: problems and configurations are of a kernel");
  }
  const auto kernel = context.kernels.find(request.kernel());
  for (int i = 0; i < request.problems_size(); ++i) {
    add_problem(*kernel->spec, request.problems(i), element("problems", i), filter.problems);
  }
  filter.values = asked_values(*kernel->spec, request.configuration());
  return filter;
}

bool is_measuring(const JobRow& job, const TrialRow& fault) {
  return job.kind == v1::Job::TUNE && job.state != v1::Job::QUEUED && job.state != v1::Job::NO_DEVICE &&
         job.question.kernel == fault.kernel && job.question.problem == fault.problem &&
         job.question.device_class == fault.device_class && job.question.policy == fault.policy;
}

/// An agent that has the fault in hand would store what belongs to it, and end with a record that knows it.
void refuse_while_measured(const std::vector<JobRow>& open, const std::vector<TrialRow>& faults) {
  for (const JobRow& job : open) {
    if (std::ranges::any_of(faults, [&](const TrialRow& fault) { return is_measuring(job, fault); })) {
      throw Error(ErrorCode::FailedPrecondition, "job " + job.id,
                  "is measuring " + job.question.kernel + " at " + to_string(job.question.problem) +
                      ": wait for its end, or cancel it");
    }
  }
}

v1::ForgetFaultsReply::Forgotten& entry_of(v1::ForgetFaultsReply& reply, const TrialRow& fault) {
  v1::Problem problem;
  to_wire(fault.problem, problem);
  auto& all = *reply.mutable_forgotten();
  if (all.empty() || all.rbegin()->kernel() != fault.kernel ||
      all.rbegin()->problem().SerializeAsString() != problem.SerializeAsString()) {
    all.Add()->set_kernel(fault.kernel);
    *all.rbegin()->mutable_problem() = std::move(problem);
  }
  return *all.rbegin();
}

/// The faults come by kernel and problem.
void count_faults(const std::vector<TrialRow>& faults, v1::ForgetFaultsReply& reply) {
  for (const TrialRow& fault : faults) {
    auto& outcomes = *entry_of(reply, fault).mutable_outcomes();
    const v1::Outcome outcome = to_wire(fault.outcome);
    auto found = std::ranges::find(outcomes, outcome, &v1::OutcomeCount::outcome);
    if (found == outcomes.end()) {
      outcomes.Add()->set_outcome(outcome);
      found = std::prev(outcomes.end());
    }
    found->set_count(found->count() + 1);
  }
}

}  // namespace

void forget_faults(ServiceContext& context, const v1::ForgetFaultsRequest& request,
                   v1::ForgetFaultsReply& reply) {
  refuse_while_draining(context);
  context.kernels.reload();
  const DeviceClass device = device_of(context, request);
  const FaultFilter filter = filter_of(context, request, device);
  std::vector<TrialRow> faults;
  const auto find = [&](StoreReader& reader) {
    faults = reader.faults(filter);
    refuse_while_measured(reader.open_jobs(), faults);
  };
  const auto forget = [&](StoreWriter& writer) {
    find(writer);
    std::ranges::for_each(faults, [&](const TrialRow& fault) { writer.forget_trial(fault); });
  };
  if (request.dry_run()) {
    context.store.read(find);
  } else {
    // On the job thread: no lease is granted meanwhile.
    context.jobs.run([&] {
      context.store.write(forget);
      context.index.load(context.store);
    });
  }
  if (faults.empty() && !filter.kernel.empty()) {
    context.kernels.find(filter.kernel);  // a name that nothing knows is a slip
  }
  reply.set_device(device.label);
  count_faults(faults, reply);
}

}  // namespace cubind
