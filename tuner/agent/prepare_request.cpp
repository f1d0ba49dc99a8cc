#include "tuner/agent/prepare_request.hpp"

#include <algorithm>
#include <cstring>
#include <map>

#include "base/error.hpp"
#include "base/key_encoder.hpp"
#include "tuner/agent/trial_device.hpp"
#include "tuner/plan/plan_program.hpp"
#include "tuner/plan/wire.hpp"
#include "tuner/spec/wire.hpp"

namespace cubind {
namespace {

std::uint64_t buffer_seed(const Digest& job_key, const std::string& name) {
  const Digest digest = KeyEncoder("buffer-seed", 1).field("job", job_key).field("buffer", name).digest();
  std::uint64_t seed = 0;
  std::memcpy(&seed, digest.bytes.data(), sizeof(seed));
  return seed;
}

// A variable of the module that nothing is copied to needs no memory.
bool keeps_itself(const Parameter& parameter) {
  return parameter.source == ParameterSource::Symbol && parameter.role == Role::Scratch;
}

// The buffers by name, each with its largest extent.
std::map<std::string, Parameter> buffers_of(const std::vector<const LaunchPlan*>& plans) {
  std::map<std::string, Parameter> uses;
  for (const LaunchPlan* plan : plans) {
    for (const Launch& launch : plan->launches) {
      for (const Parameter& parameter : launch.parameters) {
        if (!is_buffer(parameter.source) || keeps_itself(parameter)) {
          continue;
        }
        const auto [at, added] = uses.try_emplace(parameter.name, parameter);
        if (!added && parameter.extent_bytes > at->second.extent_bytes) {
          at->second = parameter;
        }
      }
    }
  }
  return uses;
}

void add_buffer(const JobInput& input, const ArgumentSpec& argument, const Problem& problem,
                const Parameter& use, v1::PrepareProblem& request) {
  v1::BufferSpec& buffer = *request.add_buffers();
  buffer.set_name(argument.name);
  buffer.set_type(std::string(to_string(use.type)));
  buffer.set_role(to_wire(use.role));
  buffer.set_elements(use.extent_bytes / size_of(use.type));
  buffer.set_align_bytes(argument.align_bytes);
  const Fill fill = input.spec->resolved_fill(argument, problem);
  buffer.mutable_fill()->set_kind(std::string(to_string(fill.kind)));
  for (const double parameter : fill.parameters) {
    buffer.mutable_fill()->add_parameters(parameter);
  }
  if (fill.kind == Fill::Kind::File) {
    buffer.mutable_fill()->set_file_content(std::string(input.spec->file_data(argument, problem)));
  }
  buffer.set_seed(buffer_seed(input.job_key, argument.name));
  buffer.set_timed_zero(argument.timed_zero);
  buffer.set_constant_output(argument.constant_output);
  buffer.set_partial(argument.partial);
  if (is_output(argument)) {
    const ToleranceBounds bounds = input.spec->bounds(argument, problem);
    buffer.set_rtol(bounds.rtol);
    buffer.set_atol(bounds.atol);
  }
}

void add_scalar(const JobInput& input, const ArgumentSpec& argument, const Problem& problem,
                v1::PrepareProblem& request) {
  v1::CallerScalar& scalar = *request.add_scalars();
  scalar.set_name(argument.name);
  scalar.set_type(std::string(to_string(input.spec->element_type(argument, problem))));
  scalar.set_value(argument.bench);
}

bool is_random(const v1::BufferSpec& buffer) {
  const std::string& kind = buffer.fill().kind();
  return (buffer.role() == v1::IN || buffer.role() == v1::INOUT) && buffer.elements() > 0 &&
         kind != to_string(Fill::Kind::Constant) && kind != to_string(Fill::Kind::Iota) &&
         kind != to_string(Fill::Kind::File);
}

}  // namespace

std::optional<LaunchPlan> buffers_plan(const JobInput& input, const Problem& problem) {
  const auto preset = default_configuration(*input.spec, problem, input.constants);
  if (!preset) {
    return std::nullopt;
  }
  const PlanProgram program(input.spec->plan_template(problem, *preset), problem, *preset, input.constants);
  std::vector<std::int64_t> values = program.initial_values();
  program.set_problem(problem, values);
  program.set_configuration(*preset, values);
  return program.plan_of_all(values);
}

v1::PrepareProblem make_prepare_request(const JobInput& input, std::uint32_t setup, const Problem& problem,
                                        const std::vector<const LaunchPlan*>& plans,
                                        const ReferenceLaunch& reference) {
  v1::PrepareProblem request;
  request.set_setup(setup);
  request.set_kernel(input.spec->name);
  to_wire(problem, *request.mutable_problem());
  to_wire(input.policy, *request.mutable_policy());
  std::vector<const LaunchPlan*> all = plans;
  all.push_back(&reference.plan);
  const std::map<std::string, Parameter> uses = buffers_of(all);
  for (const ArgumentSpec& argument : input.spec->arguments) {
    const auto use = uses.find(argument.name);
    if (use != uses.end()) {
      add_buffer(input, argument, problem, use->second, request);
    }
    if (!argument.buffer && argument.from_caller) {
      add_scalar(input, argument, problem, request);
    }
  }
  request.set_find_vacuity(setup == DeviceSetup::kMain && std::ranges::any_of(request.buffers(), is_random));
  request.set_reference(reference.kind);
  request.set_reference_cubin(reference.cubin);
  to_wire(reference.plan, *request.mutable_reference_plan());
  const WorkSizes work = input.spec->work_sizes(problem);
  request.set_floor_flops(work.flops.value_or(0));
  request.set_floor_min_read_bytes(work.min_read_bytes.value_or(0));
  return request;
}

std::chrono::milliseconds prepare_time(const v1::PrepareProblem& request) {
  constexpr double kFillBytesPerMs = 1e6;       // 1 GB/s
  constexpr double kOneThreadBytesPerMs = 1e4;  // 10 MB/s
  constexpr double kFlopsPerMs = 25e6;          // 0.1 TFLOP/s, four times: the search for vacuity
  constexpr double kMostOfOneThread = 90'000, kMost = 900'000;
  double bytes = 0;
  for (const v1::BufferSpec& buffer : request.buffers()) {
    bytes += static_cast<double>(buffer.elements()) *
             static_cast<double>(size_of(dtype_from_wire(buffer.type(), "prepare.buffers.type")));
  }
  const bool is_known = request.floor_flops() > 0;
  const double one_thread =
      is_known ? std::min(bytes / kOneThreadBytesPerMs, kMostOfOneThread) : kMostOfOneThread;
  const double all =
      bytes / kFillBytesPerMs + one_thread + static_cast<double>(request.floor_flops()) / kFlopsPerMs;
  return std::chrono::milliseconds(static_cast<std::int64_t>(std::min(all, kMost)));
}

}  // namespace cubind
