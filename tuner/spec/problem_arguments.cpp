#include "tuner/spec/problem_arguments.hpp"

#include <cstring>
#include <map>
#include <string>

#include "base/key_encoder.hpp"
#include "tuner/spec/npy.hpp"
#include "tuner/spec/wire.hpp"

namespace cubind {
namespace {

std::uint64_t buffer_seed(const Digest& key, const std::string& name) {
  const Digest digest = KeyEncoder("buffer-seed", 1).field("job", key).field("buffer", name).digest();
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

void add_buffer(const KernelSpec& spec, const ArgumentSpec& argument, const Problem& problem,
                const Parameter& use, const Digest& key, v1::PrepareProblem& request) {
  v1::BufferSpec& buffer = *request.add_buffers();
  buffer.set_name(argument.name);
  buffer.set_type(std::string(to_string(use.type)));
  buffer.set_role(to_wire(argument.role));  // plans of other configurations may clear it
  buffer.set_elements(use.extent_bytes / size_of(use.type));
  buffer.set_align_bytes(argument.align_bytes);
  const Fill fill = spec.resolved_fill(argument, problem);
  buffer.mutable_fill()->set_kind(std::string(to_string(fill.kind)));
  for (const double parameter : fill.parameters) {
    buffer.mutable_fill()->add_parameters(parameter);
  }
  if (fill.kind == Fill::Kind::File) {
    const NpyArray array = spec.file_data(argument, problem);
    buffer.mutable_fill()->set_file_content(std::string(array.data));
    buffer.mutable_fill()->set_memory(array.memory);
    buffer.mutable_fill()->set_memory_name(array.memory.empty() ? "" : "cubind-" + array.memory_digest.hex());
  }
  buffer.set_seed(buffer_seed(key, argument.name));
  buffer.set_timed_zero(argument.timed_zero);
  buffer.set_constant_output(argument.constant_output);
  buffer.set_partial(argument.partial);
  if (argument.partial_sums && argument.shape.size() > 1) {
    for (const std::int64_t axis : spec.shape(argument, problem)) {
      buffer.add_summed_shape(static_cast<std::uint64_t>(axis));
    }
  }
  if (is_output(argument)) {
    const ToleranceBounds bounds = spec.bounds(argument, problem);
    buffer.set_rtol(bounds.rtol);
    buffer.set_atol(bounds.atol);
  }
}

void add_scalar(const KernelSpec& spec, const ArgumentSpec& argument, const Problem& problem,
                v1::PrepareProblem& request) {
  v1::CallerScalar& scalar = *request.add_scalars();
  scalar.set_name(argument.name);
  scalar.set_type(std::string(to_string(spec.element_type(argument, problem))));
  scalar.set_value(argument.bench);
}

}  // namespace

void add_arguments(const KernelSpec& spec, const Problem& problem,
                   const std::vector<const LaunchPlan*>& plans, const Digest& key,
                   v1::PrepareProblem& request) {
  const std::map<std::string, Parameter> uses = buffers_of(plans);
  for (const ArgumentSpec& argument : spec.arguments) {
    const auto use = uses.find(argument.name);
    if (use != uses.end()) {
      add_buffer(spec, argument, problem, use->second, key, request);
    }
    if (!argument.buffer && argument.from_caller) {
      add_scalar(spec, argument, problem, request);
    }
  }
}

}  // namespace cubind
