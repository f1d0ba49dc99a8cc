#include "tuner/spec/keys.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.hpp"
#include "base/key_encoder.hpp"
#include "base/text.hpp"
#include "plan/launch_digest.hpp"

namespace cubind {
namespace {

// The version of each encoding. A field that is added, dropped or changed in meaning needs a new version. Old
// keys then match nothing: that costs a measurement and never hands out wrong code.
constexpr std::uint32_t kArtifactVersion = 1;
constexpr std::uint32_t kTrialVersion = 1;
constexpr std::uint32_t kInterfaceVersion = 1;
constexpr std::uint32_t kRecordVersion = 1;
constexpr std::uint32_t kVerificationVersion = 1;
constexpr std::uint32_t kSpaceVersion = 1;
constexpr std::uint32_t kSourceVersion = 1;

// The way in which inputs are made from the job's key. It is part of the trial's key, because data decides
// branches and clocks.
constexpr std::string_view kSeedScheme = "job/1";

Key finished(const KeyEncoder& encoder) { return {encoder.digest(), encoder.bytes()}; }

void put_strings(KeyEncoder& key, std::string_view tag, const std::vector<std::string>& texts) {
  key.list(tag, texts.size());
  for (const std::string& text : texts) {
    key.field("item", text);
  }
}

void put_values(KeyEncoder& key, std::string_view tag, const std::vector<NamedValue>& values) {
  key.list(tag, values.size());
  for (const NamedValue& value : values) {
    key.begin("value").field("name", value.name).field("value", value.value).end();
  }
}

void put_problem(KeyEncoder& key, const Problem& problem) {
  key.begin("problem");
  put_values(key, "dims", problem.dims);
  key.list("types", problem.types.size());
  for (const TypeBinding& type : problem.types) {
    key.begin("type").field("name", type.name).field("type", to_string(type.type)).end();
  }
  put_values(key, "flags", problem.flags);
  key.field("scenario", problem.scenario).end();
}

void put_sources(KeyEncoder& key, const Digest& source,
                 const std::vector<std::pair<std::string, Digest>>& includes) {
  key.field("source", source);
  key.list("includes", includes.size());
  for (const auto& [name, digest] : includes) {
    key.begin("include").field("name", name).field("digest", digest).end();
  }
}

std::string_view role_name(Role role) {
  switch (role) {
    case Role::None:
      return "none";
    case Role::In:
      return "in";
    case Role::Out:
      return "out";
    case Role::InOut:
      return "inout";
    case Role::Zero:
      return "zero";
    case Role::Scratch:
      return "scratch";
  }
  throw Error(ErrorCode::Internal, "role", "unknown value");
}

void put_axes(KeyEncoder& key, std::string_view tag, const Dim3& axes) {
  key.begin(tag).field("x", axes.x).field("y", axes.y).field("z", axes.z).end();
}

void put_tensor_map(KeyEncoder& key, const TensorMap& map) {
  key.begin("tensor_map").field("type", to_string(map.type)).field("nan_fill", map.nan_fill);
  key.list("axes", map.axes);
  for (std::size_t axis = 0; axis < map.axes; ++axis) {
    key.begin("axis")
        .field("size", map.sizes[axis])
        .field("stride", map.strides[axis])
        .field("box", map.box[axis])
        .field("element_stride", map.element_strides[axis])
        .end();
  }
  key.field("swizzle", map.swizzle)
      .field("interleave", map.interleave)
      .field("l2_promotion", map.l2_promotion)
      .end();
}

void put_parameter(KeyEncoder& key, const Parameter& parameter) {
  key.begin("parameter").field("name", parameter.name).field("type", to_string(parameter.type));
  if (is_buffer(parameter.source)) {
    key.field("role", role_name(parameter.role))
        .field("extent_bytes", parameter.extent_bytes)
        .field("align_bytes", parameter.align_bytes);
  } else {
    key.field("value", parameter.value);
  }
  if (parameter.source == ParameterSource::Symbol) {
    key.field("variable", parameter.variable);
  } else if (parameter.source == ParameterSource::TensorMap) {
    put_tensor_map(key, parameter.tensor_map);
  }
  key.end();
}

// Leaves out symbols, which follow from the entries, and the caller's scalars.
void put_plan(KeyEncoder& key, const LaunchPlan& plan) {
  key.list("plan", plan.launches.size());
  for (const Launch& launch : plan.launches) {
    key.begin("launch").field("entry", launch.entry);
    put_axes(key, "grid", launch.grid);
    put_axes(key, "block", launch.block);
    if (launch.cluster) {
      put_axes(key, "cluster", *launch.cluster);
    }
    put_attributes(key, launch.attributes);
    key.field("shared_bytes", launch.shared_bytes).begin("parameters");
    for (const Parameter& parameter : launch.parameters) {
      if (parameter.source != ParameterSource::Caller) {
        put_parameter(key, parameter);
      }
    }
    key.end().end();
  }
}

void put_fills(KeyEncoder& key, const KernelSpec& spec, const Problem& problem) {
  key.begin("fills");
  for (const ArgumentSpec& argument : spec.arguments) {
    if (argument.role == Role::In || argument.role == Role::InOut) {
      const Fill fill = spec.resolved_fill(argument, problem);
      key.begin("fill").field("argument", argument.name).field("kind", to_string(fill.kind));
      key.list("parameters", fill.parameters.size());
      for (const double parameter : fill.parameters) {
        key.field("item", parameter);
      }
      if (fill.kind == Fill::Kind::File) {
        key.field("content", fill.content);
      }
      key.end();
    } else if (argument.role == Role::Zero) {
      key.begin("zero").field("argument", argument.name).field("timed", argument.timed_zero).end();
    } else if (!std::isfinite(argument.bench)) {
      key.begin("scalar").field("argument", argument.name).field("value", std::to_string(argument.bench));
      key.end();
    }
  }
  key.end().field("seeds", kSeedScheme);
}

void put_launch_spec(KeyEncoder& key, const KernelSpec& spec, const LaunchSpec& launch) {
  key.begin("launch").field("entry", launch.entry);
  put_strings(key, "arguments", launch.arguments);
  put_strings(key, "grid", launch.grid);
  put_strings(key, "block", launch.block);
  if (!launch.cluster.empty()) {
    put_strings(key, "cluster", launch.cluster);
  }
  put_attributes(key, launch.attributes);
  for (const std::string& name : launch.arguments) {
    if (const ArgumentSpec& argument = *spec.argument(name); argument.tensor_map) {
      key.field("map_of", argument.tensor_map->buffer).field("map_type", argument.type);
      put_tensor_map(key, argument.tensor_map->map);
    }
  }
  key.field("shared_bytes", launch.shared_bytes).end();
}

void put_launch_specs(KeyEncoder& key, const KernelSpec& spec, const std::vector<LaunchSpec>& launches) {
  key.list("launches", launches.size());
  for (const LaunchSpec& launch : launches) {
    put_launch_spec(key, spec, launch);
  }
}

void put_tunables_and_launches(KeyEncoder& key, const KernelSpec& spec) {
  key.list("tunables", spec.tunables.size());
  for (const Tunable& tunable : spec.tunables) {
    std::vector<std::string> values;
    for (const std::int64_t value : tunable.values) {
      values.push_back(std::to_string(value));
    }
    put_strings(key, tunable.name, values);
  }
  put_launch_specs(key, spec, spec.launches);
}

void put_defaults(KeyEncoder& key, const KernelSpec& spec) {
  std::vector<std::string> defaults;
  for (const Configuration& configuration : spec.defaults) {
    defaults.push_back(to_string(configuration));
  }
  put_strings(key, "defaults", defaults);
}

/// Where the default configuration is the reference.
void put_default_reference(KeyEncoder& key, const KernelSpec& spec) {
  if (spec.triton) {
    const TritonVariant& variant = spec.triton_variant(spec.defaults.front());
    key.field("ttir", variant.ttir).field("triton_options", variant.options);
    return;
  }
  put_sources(key, spec.source_digests.source, spec.source_digests.includes);
  put_strings(key, "options", spec.options);
  put_strings(key, "defines", spec.defines);
  put_defaults(key, spec);
  put_launch_specs(key, spec, spec.launches);
}

void put_bound(KeyEncoder& key, std::string_view tag, const BoundSpec& bound) {
  if (bound.kind == BoundSpec::Kind::Number) {
    key.field(tag, bound.factor);
    return;
  }
  key.begin(tag)
      .field("factor", bound.factor)
      .field(bound.kind == BoundSpec::Kind::Times ? "times" : "sqrt", bound.expression)
      .end();
}

std::string_view kind_name(ReferenceSpec::Kind kind) {
  switch (kind) {
    case ReferenceSpec::Kind::Kernel:
      return "kernel";
    case ReferenceSpec::Kind::Default:
      return "default";
  }
  throw Error(ErrorCode::Internal, "reference", "unknown kind");
}

std::string_view kind_name(const ArgumentSpec& argument) {
  return argument.buffer ? "buffer" : argument.from_caller ? "caller" : "value";
}

void put_code(KeyEncoder& key, const ArtifactSource& source, const NvrtcSource& code) {
  put_sources(key, code.source, code.includes);
  put_strings(key, "entries", source.entries);
  put_strings(key, "options", code.options);
  put_strings(key, "defines", code.defines);
}

void put_code(KeyEncoder& key, const ArtifactSource& source, const TritonSource& code) {
  key.field("ttir", code.ttir).field("triton_options", code.options);
  put_strings(key, "entries", source.entries);
}

}  // namespace

Key artifact_key(const ArtifactSource& source, const ToolchainIdentity& toolchain) {
  KeyEncoder key("artifact", kArtifactVersion);
  std::visit([&](const auto& code) { put_code(key, source, code); }, source.code);
  key.field("architecture", source.architecture)
      .field("nvrtc", toolchain.nvrtc)
      .field("builtins", toolchain.builtins)
      .field("toolkit_headers", toolchain.headers);
  return finished(key);
}

Key trial_key(const TrialContext& context, const Key& artifact, const LaunchPlan& plan) {
  KeyEncoder key("trial", kTrialVersion);
  key.list("artifacts", 1).field("item", artifact.digest);
  put_plan(key, plan);
  put_problem(key, context.problem);
  put_fills(key, *context.spec, context.problem);
  key.field("device_class", context.device_class)
      .field("policy", to_string(context.policy))
      .field("driver_branch", context.driver_branch);
  return finished(key);
}

Digest interface_digest(const KernelSpec& spec) {
  KeyEncoder key("interface", kInterfaceVersion);
  key.list("dims", spec.dims.size());
  for (const DimSpec& dim : spec.dims) {
    key.field("item", dim.name);
  }
  key.list("flags", spec.flags.size());
  for (const NamedValue& flag : spec.flags) {
    key.field("item", flag.name);
  }
  const auto is_map = [](const ArgumentSpec& argument) { return argument.tensor_map.has_value(); };
  const auto maps = static_cast<std::size_t>(std::ranges::count_if(spec.arguments, is_map));
  key.list("arguments", spec.arguments.size() - maps);
  for (const ArgumentSpec& argument : spec.arguments) {
    if (is_map(argument)) {
      continue;  // callers pass its buffer
    }
    key.begin("argument").field("kind", kind_name(argument)).field("type", argument.type);
    if (argument.buffer) {
      key.field("role", role_name(argument.role)).field("align_bytes", argument.align_bytes);
    }
    key.end();
  }
  return key.digest();
}

Key record_key(const RecordQuestion& question) {
  KeyEncoder key("record", kRecordVersion);
  key.field("kernel", question.kernel).field("interface", question.interface);
  put_problem(key, question.problem);
  key.field("device_class", question.device_class)
      .field("policy", to_string(question.policy))
      .field("numerics", to_string(question.numerics))
      .field("namespace", question.name_space);
  return finished(key);
}

Digest verification_digest(const KernelSpec& spec) {
  KeyEncoder key("verification", kVerificationVersion);
  key.field("kind", kind_name(spec.reference.kind));
  if (spec.reference.kind == ReferenceSpec::Kind::Kernel) {
    put_sources(key, spec.reference_digests.source, spec.reference_digests.includes);
    put_launch_specs(key, spec, spec.reference.launches);
  } else {
    put_default_reference(key, spec);
  }
  std::vector<Tolerance> tolerances = spec.tolerances;
  std::ranges::sort(tolerances, {}, [](const Tolerance& one) { return std::pair(one.output, one.type); });
  key.list("tolerances", tolerances.size());
  for (const Tolerance& tolerance : tolerances) {
    key.begin("tolerance").field("type", to_string(tolerance.type));
    put_bound(key, "rtol", tolerance.rtol);
    put_bound(key, "atol", tolerance.atol);
    if (!tolerance.output.empty()) {
      key.field("output", tolerance.output);
    }
    key.end();
  }
  // Only where there are any: digests from before are as they were.
  for (const ArgumentSpec& argument : spec.arguments) {
    if (argument.constant_output) {
      key.field("constant_output", argument.name);
    }
    if (argument.partial) {
      key.field("partial", argument.name);
    }
    if (argument.partial_sums) {
      key.field("partial_sums", argument.name).list("shape", argument.shape.size());
      for (const std::string& axis : argument.shape) {
        key.field("axis", axis);
      }
    }
    if (argument.fill.kind == Fill::Kind::File) {
      key.field("data_of", argument.name).field("content", argument.fill.content);
    }
  }
  return key.digest();
}

Digest source_digest(const KernelSpec& spec) {
  KeyEncoder key("source", kSourceVersion);
  if (spec.triton) {
    key.field("entry", spec.launches.front().entry).field("target", spec.triton->name());
  } else {
    key.field("source", spec.source_digests.source);
  }
  return key.digest();
}

Digest verification_digest(const KernelSpec& spec, const Numerics& numerics) {
  if (numerics.kind != Numerics::Kind::Invariant) {
    return verification_digest(spec);
  }
  KeyEncoder key("invariance", kVerificationVersion);
  key.field("verification", verification_digest(spec));
  put_strings(key, "constraints", spec.constraints);
  put_defaults(key, spec);
  put_tunables_and_launches(key, spec);
  return key.digest();
}

Digest space_digest(const KernelSpec& spec, const Problem& problem, const DeviceConstants& device) {
  KeyEncoder key("space", kSpaceVersion);
  put_strings(key, "constraints", spec.constraints);
  put_tunables_and_launches(key, spec);
  key.list("arguments", spec.arguments.size());
  for (const ArgumentSpec& argument : spec.arguments) {
    key.begin("argument")
        .field("name", argument.name)
        .field("extent", argument.extent)
        .field("expr", argument.expr);
    if (!argument.symbol.empty()) {
      key.field("symbol", argument.symbol);
    }
    key.end();
  }
  put_strings(key, "options", spec.options);
  put_strings(key, "defines", spec.defines);
  put_problem(key, problem);
  put_values(key, "device",
             {{"sm_count", device.sm_count},
              {"shared_optin", device.shared_optin},
              {"l2_bytes", device.l2_bytes},
              {"cc", device.cc}});
  return key.digest();
}

Digest job_key(const RecordQuestion& question) { return record_key(question).digest; }

Digest from_scratch_key(const RecordQuestion& question) {
  return KeyEncoder("from-scratch-job", 1).field("job", job_key(question)).digest();
}

}  // namespace cubind
