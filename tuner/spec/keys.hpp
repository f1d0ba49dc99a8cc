// The keys: artifact, trial, record, interface, verification. Each key is its full canonical
// encoding and the SHA-256 of it; the full key is stored with the hash and compared on read. tests/golden
// pins the encodings.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/digest.hpp"
#include "tuner/spec/device_class.hpp"
#include "tuner/spec/kernel_spec.hpp"

namespace cubind {

struct Key {
  Digest digest;
  std::string full;
  bool operator==(const Key&) const = default;
};

/// The digests of a toolchain that enter the artifact key. Those of NVRTC are of its two libraries; `headers`
/// covers the sorted (name, digest) pairs of the toolkit's own headers in the include closure.
///
/// Those of Triton are of the texts "triton 3.6.0" and "ptxas 12.9.86", and no headers: its compiles repeat
/// byte by byte wherever these versions are installed.
struct ToolchainIdentity {
  std::string name;  // "nvrtc 13.0": a label and validator, not in the key
  Digest nvrtc, builtins, headers;
  bool operator==(const ToolchainIdentity&) const = default;
};

/// That of every compile for this target.
ToolchainIdentity triton_identity(const TritonTarget& target);

/// 13 of "nvrtc 13.0"; 0 if the name has no version.
std::uint32_t toolchain_major(const ToolchainIdentity& toolchain);

/// CUDA C++ for NVRTC.
struct NvrtcSource {
  Digest source;
  std::vector<std::pair<std::string, Digest>> includes;  // sorted; the spec's own files
  std::vector<std::string> options;                      // canonical
  std::vector<std::string> defines;                      // NAME=VALUE
  bool operator==(const NvrtcSource&) const = default;
};

/// A text of Triton's IR, without locations.
struct TritonSource {
  Digest ttir;
  std::string options;  // canonical JSON
  bool operator==(const TritonSource&) const = default;
};

/// The part that the daemon can compute without a toolchain.
struct ArtifactSource {
  std::variant<NvrtcSource, TritonSource> code;
  /// Name expressions in launch order, then of variables ("&filter"); of a Triton kernel its name.
  std::vector<std::string> entries;
  std::string architecture;
  bool operator==(const ArtifactSource&) const = default;
};

ArtifactSource artifact_source(const KernelSpec& spec, const Problem& problem,
                               const Configuration& configuration, const std::string& architecture);
/// The source of the reference kernel: without the spec's defines, and without options that change results or
/// depend on a tunable.
ArtifactSource reference_artifact_source(const KernelSpec& spec, const Problem& problem,
                                         const std::string& architecture);
Key artifact_key(const ArtifactSource& source, const ToolchainIdentity& toolchain);

/// How a sample gets a cold L2: a buffer of twice the L2 is read and the kernel follows at once. Nothing
/// measures the earlier methods any more: 1 and 2 wrote the buffer, so that kernels waited for lines to be
/// written back, and with 1 the GPU was idle before the kernel.
inline constexpr std::uint32_t kFlushMethod = 3;

struct Policy {
  bool warm_l2 = false;
  std::uint32_t flush_method = kFlushMethod;
  bool graph_launch = false;
  bool operator==(const Policy&) const = default;
};
/// The policy with the current flush method, whichever was asked for.
Policy as_measured_today(Policy policy);
/// "cold/3,stream".
std::string to_string(const Policy& policy);
/// The inverse; absent for any other text.
std::optional<Policy> parse_policy(std::string_view text);

struct Numerics {
  enum class Kind : std::uint8_t { Tolerance, Reproducible, Invariant };
  Kind kind = Kind::Tolerance;
  std::string invariant_dim;
  bool operator==(const Numerics&) const = default;
};
/// "tolerance", "reproducible", "invariant:N".
std::string to_string(const Numerics& numerics);
/// The inverse; absent for any other text.
std::optional<Numerics> parse_numerics(std::string_view text);

/// The launch plan enters with entry expressions, not symbols, and without the caller's scalars.
struct TrialContext {
  const KernelSpec* spec = nullptr;
  Problem problem;
  Digest device_class;
  Policy policy;
  std::string driver_branch;
};
Key trial_key(const TrialContext& context, const Key& artifact, const LaunchPlan& plan);
/// Equal for kernels that may have trials in common: covers the source, and of Triton kernels the entry with
/// its target. Not a key: it selects trials, which are then told apart by theirs.
Digest source_digest(const KernelSpec& spec);

/// Names of dims and flags; arguments in order with kind, element type, role and alignment; nothing else.
Digest interface_digest(const KernelSpec& spec);

struct RecordQuestion {
  std::string kernel;
  Digest interface;
  Problem problem;
  Digest device_class;
  Policy policy;
  Numerics numerics;
  std::string name_space;
};
Key record_key(const RecordQuestion& question);

/// Covers the tolerance and the reference: its source closure and launches, or where the default
/// configuration is the reference, everything that makes and launches that one.
Digest verification_digest(const KernelSpec& spec);
/// The digest for a record with these numerics. Invariant rows were compared with the default configurations,
/// so it also covers what chooses and launches those: an edited default is another comparison.
Digest verification_digest(const KernelSpec& spec, const Numerics& numerics);

/// Covers everything that makes the configurations of a space and tells them apart: tunables, constraints,
/// launches, arguments, options, the problem and the device's constants. Sources are not in it: a changed one
/// changes the key of the winner's trial.
Digest space_digest(const KernelSpec& spec, const Problem& problem, const DeviceConstants& device);

/// Seeds rounds and inputs: the record key of the job.
Digest job_key(const RecordQuestion& question);
/// Of a job that chooses as if nothing were known: another job than the one that stores a record.
Digest from_scratch_key(const RecordQuestion& question);

}  // namespace cubind
