// The sections of a kernel spec, each read by one function into the KernelSpec. Order matters: problem,
// tunables, scopes, then the rest. Every error is an Error(InvalidArgument) at file and pointer.
#pragma once

#include "base/json.hpp"
#include "base/json_node.hpp"
#include "tuner/spec/kernel_spec.hpp"
#include "tuner/spec/spec_fields.hpp"

namespace cubind {

/// /problem and /specialize: dims with their buckets, types, flags.
void read_problem(const JsonNode& root, KernelSpec& spec);
/// /tunables. The names must differ from those of the problem.
void read_tunables(const JsonNode& root, KernelSpec& spec);

SpecScopes make_scopes(const KernelSpec& spec);

void read_constraints(const JsonNode& root, const SpecScopes& scopes, KernelSpec& spec);
/// /default: listed values only.
void read_defaults(const JsonNode& root, KernelSpec& spec);
inline constexpr char kNoOutput[] = "nothing can be verified: no argument has the role out, inout or zero";
void read_arguments(const JsonNode& root, const SpecScopes& scopes, KernelSpec& spec);
/// An argument that is a tensor map, after the buffers have been read.
void read_tensor_map(const JsonNode& node, const SpecScopes& scopes, KernelSpec& spec,
                     ArgumentSpec& argument);
/// A text that is compiled, with placeholders; tunables are none of them for the reference.
std::string read_compiled_text(const JsonNode& node, const KernelSpec& spec, bool with_tunables);
void read_launches(const JsonNode& root, const SpecScopes& scopes, KernelSpec& spec);
/// /reference: a kernel, or "default".
void read_reference(const JsonNode& root, const SpecScopes& scopes, KernelSpec& spec);
/// /tolerance: by type, and by output and type.
void read_tolerance(const JsonNode& root, const SpecScopes& scopes, KernelSpec& spec);
/// Refuses an output without a tolerance for a type that it may have.
void check_tolerances(const JsonNode& root, const KernelSpec& spec);
void read_work(const JsonNode& root, const SpecScopes& scopes, KernelSpec& spec);
/// /options, /defines, /headers, /arch_features.
void read_compilation(const JsonNode& root, KernelSpec& spec);

/// Of a spec's JSON text.
inline const JsonLimits kSpecJsonLimits{SpecLimits::kBytes, 32};

/// Whether /language says so.
bool is_triton_document(const JsonNode& root);
/// Of /triton.
TritonTarget read_triton_target(const JsonNode& node);
/// Everything but the name of a spec whose language is Triton.
void read_triton_document(const JsonNode& root, KernelSpec& spec);

/// Refuses a shape that has another number of elements than its extent, for any of some problems
/// that meet the constraints of a default configuration.
void check_shapes(const JsonNode& root, const KernelSpec& spec);

/// Refuses arguments that no launch is given, and a spec without an output.
void check_arguments(const JsonNode& root, const KernelSpec& spec);

/// Faults that only the whole spec shows: names that nothing uses, outputs that no launch or no reference
/// writes, listed types without a tolerance.
void check_spec(const JsonNode& root, const KernelSpec& spec);

}  // namespace cubind
