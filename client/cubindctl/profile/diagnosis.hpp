// What limits a variant, in one sentence, by written rules.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "client/cubindctl/profile/variant_profile.hpp"

namespace cubind::ctl {

/// The rules in the order in which they are tried: the first that holds is the diagnosis. They look at the
/// launch that takes the longest, and at the bytes of all launches.
enum class DiagnosisRule : std::uint8_t {
  ExcessTraffic,  // the memory is at its peak, and moves more than it must
  MemoryPeak,     // the memory is at its peak
  TensorIdle,     // many operations per byte, as in matrix products, and the tensor cores rest
  TensorPeak,     // the tensor cores are busy
  ComputePeak,    // another part of the SMs is at its peak
  FewBlocks,      // the grid fills less than half of the GPU
  Spills,         // registers spill to memory
  LowOccupancy,   // few warps are active
  Stalls,         // none of these: what warps wait for
};

/// "excess_traffic", "memory_peak", ...
std::string_view to_string(DiagnosisRule rule);

/// The bounds of the rules. docs/cli.md lists them.
struct DiagnosisBounds {
  double memory_peak = 0.7;      // share from which on the memory is at its peak: copies reach about 0.9
  double excess_traffic = 1.25;  // bytes moved per byte that must move
  double matrix_intensity = 30;  // operations per byte: what is no product of matrices has fewer
  double tensor_idle = 0.05;     // share below which the tensor cores rest
  double tensor_peak = 0.7;
  double compute_peak = 0.75;
  double few_waves = 0.5;
  double low_occupancy = 0.3;
};

struct Diagnosis {
  DiagnosisRule rule = DiagnosisRule::Stalls;
  std::string sentence;
};

/// A pure function of the profile.
Diagnosis diagnose(const VariantProfile& profile, const DiagnosisBounds& bounds = {});

}  // namespace cubind::ctl
