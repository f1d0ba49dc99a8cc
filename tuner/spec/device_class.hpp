// The facts that make two GPUs interchangeable for timing. Callers send raw facts; only the daemon uses this
// derivation.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/digest.hpp"
#include "plan/facts/facts.hpp"
#include "plan/launch_plan.hpp"

namespace cubind {

struct DeviceClass {
  Digest digest;      // the key
  std::string full;   // the encoded key, stored with it
  std::string label;  // "nvidia-h200", "replay-1a2b3c4d"; never a key
  DeviceFacts facts;
};

/// Key fields: PCI device id, compute capability, SM count, L2, opt-in shared memory, memory size to the
/// nearest power of 2^(1/4) GiB, bus width, MIG profile, and the replayed table. Throws
/// Error(InvalidArgument) at "FIELD.l2_bytes" where a fact is missing or no GPU can have it.
DeviceClass derive_device_class(const DeviceFacts& facts, std::string_view field);

DeviceConstants device_constants(const DeviceFacts& facts);

/// "sm_90", or "sm_90a" with `arch_features`; architectures before 9.0 have no such features and no suffix.
std::string architecture(const DeviceFacts& facts, bool arch_features);
std::string architecture(std::uint32_t compute_capability, bool arch_features);

/// 90 of "sm_90" and of "sm_90a"; absent where the text is no architecture.
std::optional<std::uint32_t> compute_capability(std::string_view architecture);

/// Whether an NVRTC that names these architectures compiles for this one, suffixed or not: it names them
/// without suffix.
bool knows_architecture(std::span<const std::string> known, std::string_view architecture);

/// A cubin serves its own compute capability, a suffix-free one also later minors of that major, an 'a' one
/// nothing else.
bool cubin_runs_on(std::string_view architecture, std::uint32_t cc_major, std::uint32_t cc_minor);

/// Whether a driver (cuDriverGetVersion) loads the cubins of an NVRTC of this major version: 13 needs 13000,
/// 12 needs 12000.
bool driver_loads(std::uint32_t driver_cuda, std::uint32_t nvrtc_major);

/// "580" of "580.159.04".
std::string driver_branch(std::string_view driver_version);

}  // namespace cubind
