#include "tuner/agent/problem_setup.hpp"

#include <algorithm>
#include <cstring>
#include <map>

#include "base/error.hpp"
#include "tuner/expr/expression.hpp"
#include "tuner/plan/wire.hpp"
#include "tuner/spec/wire.hpp"

namespace cubind {
namespace {

Scope scope_of(const JobInput& input, const Problem& problem) {
  Scope scope;
  for (const NamedValue& dim : problem.dims) scope.set(dim.name, dim.value);
  for (const NamedValue& flag : problem.flags) scope.set(flag.name, flag.value);
  for (const TypeBinding& type : problem.types) {
    scope.set_sizeof(type.name, static_cast<std::int64_t>(size_of(type.type)));
  }
  scope.set("device.sm_count", input.constants.sm_count);
  scope.set("device.shared_optin", input.constants.shared_optin);
  scope.set("device.l2_bytes", input.constants.l2_bytes);
  scope.set("device.cc", input.constants.cc);
  return scope;
}

// Zero: unknown.
std::uint64_t amount(const std::string& expression, const Scope& scope) {
  if (expression.empty()) return 0;
  return static_cast<std::uint64_t>(std::max<std::int64_t>(Expression::parse(expression).evaluate(scope), 0));
}

std::uint64_t buffer_seed(const Digest& job_key, const std::string& name) {
  const Digest digest = Digest::of(std::string(job_key.view()) + "buffer " + name);
  std::uint64_t seed = 0;
  std::memcpy(&seed, digest.bytes.data(), sizeof(seed));
  return seed;
}

// By name, each with its largest extent.
std::map<std::string, Parameter> buffers_of(const std::vector<const LaunchPlan*>& plans) {
  std::map<std::string, Parameter> uses;
  for (const LaunchPlan* plan : plans) {
    for (const Launch& launch : plan->launches) {
      for (const Parameter& parameter : launch.parameters) {
        if (parameter.source != ParameterSource::Buffer) continue;
        const auto [at, added] = uses.try_emplace(parameter.name, parameter);
        if (!added && parameter.extent_bytes > at->second.extent_bytes) at->second = parameter;
      }
    }
  }
  return uses;
}

void fill_to_wire(const Fill& fill, const Scope& scope, v1::FillSpec& to) {
  to.set_kind(std::string(to_string(fill.kind)));
  if (!fill.expression.empty()) {
    to.add_parameters(static_cast<double>(Expression::parse(fill.expression).evaluate(scope)));
  }
  for (const double parameter : fill.parameters) to.add_parameters(parameter);
}

void add_buffer(const JobInput& input, const ArgumentSpec& argument, const Parameter& use, const Scope& scope,
                v1::PrepareProblem& request) {
  v1::BufferSpec& buffer = *request.add_buffers();
  buffer.set_name(argument.name);
  buffer.set_type(std::string(to_string(use.type)));
  buffer.set_role(to_wire(use.role));
  buffer.set_elements(use.extent_bytes / size_of(use.type));
  buffer.set_align_bytes(argument.align_bytes);
  fill_to_wire(argument.fill, scope, *buffer.mutable_fill());
  buffer.set_seed(buffer_seed(input.job_key, argument.name));
  buffer.set_timed_zero(argument.timed_zero);
  if (const auto tolerance = input.spec->tolerance(use.type)) {
    buffer.set_rtol(tolerance->rtol);
    buffer.set_atol(tolerance->atol);
  }
}

void add_scalar(const JobInput& input, const ArgumentSpec& argument, v1::PrepareProblem& request) {
  v1::CallerScalar& scalar = *request.add_scalars();
  scalar.set_name(argument.name);
  const auto bound = input.problem.type(argument.type);
  scalar.set_type(bound ? std::string(to_string(*bound)) : argument.type);
  scalar.set_value(argument.bench);
}

}  // namespace

v1::PrepareProblem make_problem_setup(const JobInput& input, std::uint32_t setup, const Problem& problem,
                                      const std::vector<const LaunchPlan*>& plans,
                                      const ReferenceLaunch& reference) {
  v1::PrepareProblem request;
  request.set_setup(setup);
  request.set_kernel(input.spec->name);
  to_wire(problem, *request.mutable_problem());
  to_wire(input.policy, *request.mutable_policy());
  const Scope scope = scope_of(input, problem);
  std::vector<const LaunchPlan*> all = plans;
  all.push_back(&reference.plan);
  const std::map<std::string, Parameter> uses = buffers_of(all);
  for (const ArgumentSpec& argument : input.spec->arguments) {
    const auto use = uses.find(argument.name);
    if (use != uses.end()) add_buffer(input, argument, use->second, scope, request);
    if (!argument.buffer && argument.from_caller) add_scalar(input, argument, request);
  }
  request.set_reference(reference.kind);
  request.set_reference_cubin(reference.cubin);
  to_wire(reference.plan, *request.mutable_reference_plan());
  request.set_floor_flops(amount(input.spec->work.flops, scope));
  request.set_floor_min_read_bytes(amount(input.spec->work.min_read_bytes, scope));
  return request;
}

LaunchPlan with_symbols(LaunchPlan plan, const std::vector<std::string>& entries,
                        const std::vector<std::string>& symbols) {
  for (Launch& launch : plan.launches) {
    const auto at = std::find(entries.begin(), entries.end(), launch.entry);
    const auto index = static_cast<std::size_t>(at - entries.begin());
    if (index >= symbols.size()) {
      throw Error(ErrorCode::Internal, launch.entry, "the artifact has no symbol of this entry");
    }
    launch.entry_symbol = symbols[index];
  }
  return plan;
}

}  // namespace cubind
