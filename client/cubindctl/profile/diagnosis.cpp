#include "client/cubindctl/profile/diagnosis.hpp"

#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "client/cubindctl/terminal/text_table.hpp"

namespace cubind::ctl {
namespace {

// What warps wait for, in words. What ncu may name besides is printed by its name alone.
constexpr std::pair<std::string_view, std::string_view> kStallWords[] = {
    {"barrier", "the other warps of the block at a barrier"},
    {"branch_resolving", "branches"},
    {"dispatch_stall", "the dispatch of an instruction"},
    {"drain", "their last stores"},
    {"gmma", "matrix instructions (wgmma)"},
    {"imc_miss", "constants from memory"},
    {"lg_throttle", "a place in the queue of global and local memory"},
    {"long_scoreboard", "loads from global or local memory"},
    {"math_pipe_throttle", "a busy arithmetic unit"},
    {"membar", "memory fences"},
    {"mio_throttle", "a place in the queue of shared memory and special functions"},
    {"no_instruction", "their next instruction"},
    {"not_selected", "other warps, which issue"},
    {"short_scoreboard", "shared memory or special functions"},
    {"tex_throttle", "a place in the queue of textures"},
    {"wait", "the fixed latency of instructions"},
};

std::string in_words(const Stall& stall) {
  const auto* const found =
      std::ranges::find(kStallWords, stall.reason, &std::pair<std::string_view, std::string_view>::first);
  return found == std::end(kStallWords) ? stall.reason
                                        : std::string(found->second) + " (" + stall.reason + ")";
}

class Diagnosing {
 public:
  Diagnosing(const VariantProfile& profile, const DiagnosisBounds& bounds)
      : profile_(profile), bounds_(bounds), slowest_(profile.slowest()) {}

  DiagnosisRule rule() const {
    if (slowest_.memory_share >= bounds_.memory_peak) {
      return profile_.traffic_ratio().value_or(1) >= bounds_.excess_traffic ? DiagnosisRule::ExcessTraffic
                                                                            : DiagnosisRule::MemoryPeak;
    }
    if (intensity() >= bounds_.matrix_intensity && tensor_share() < bounds_.tensor_idle) {
      return DiagnosisRule::TensorIdle;
    }
    if (slowest_.tensor_share.value_or(0) >= bounds_.tensor_peak) {
      return DiagnosisRule::TensorPeak;
    }
    if (slowest_.sm_share >= bounds_.compute_peak) {
      return DiagnosisRule::ComputePeak;
    }
    if (slowest_.waves.value_or(1) < bounds_.few_waves) {
      return DiagnosisRule::FewBlocks;
    }
    if (profile_.spilled_bytes > 0) {
      return DiagnosisRule::Spills;
    }
    return slowest_.occupancy < bounds_.low_occupancy ? DiagnosisRule::LowOccupancy : DiagnosisRule::Stalls;
  }

  std::string sentence(DiagnosisRule rule) const {
    switch (rule) {
      case DiagnosisRule::ExcessTraffic:
        return "memory-bound with excess traffic: " + memory() + " and moves " + traffic() +
               "; reuse in registers, shared memory or the L2 what is read more than once";
      case DiagnosisRule::MemoryPeak:
        return "memory-bound at the peak: " + memory() +
               (profile_.traffic_ratio() ? " and moves " + traffic() : "") +
               "; only fewer bytes make it faster: a narrower type, or a fusion with its neighbours";
      case DiagnosisRule::TensorIdle:
        return "no tensor cores: they work " + percent(tensor_share(), 1) + " of the time, though " +
               fixed(intensity(), 0) +
               " operations per byte are those of matrix products; use matrix instructions";
      case DiagnosisRule::TensorPeak:
        return "compute-bound: the tensor cores work " + percent(tensor_share(), 0) +
               " of the time; only fewer operations or a narrower type make it faster";
      case DiagnosisRule::ComputePeak:
        return "compute-bound: the SMs run at " + percent(slowest_.sm_share, 0) +
               " of their peak; only fewer or cheaper instructions make it faster";
      case DiagnosisRule::FewBlocks:
        return "latency-bound by a small grid: its blocks fill " + percent(slowest_.waves.value_or(0), 0) +
               " of the GPU; smaller tiles or a split of the reduced dim give more blocks";
      case DiagnosisRule::Spills:
        return "latency-bound by spills: " + std::to_string(profile_.spilled_bytes) +
               " bytes of registers per thread go through memory; smaller tiles or more threads avoid it";
      case DiagnosisRule::LowOccupancy:
        return "latency-bound by occupancy: " + percent(slowest_.occupancy, 0) + " of the warps are active" +
               limit() + "; more warps or more loads in flight hide latency";
      case DiagnosisRule::Stalls:
        return "latency-bound: neither memory (" + percent(slowest_.memory_share, 0) + ") nor SMs (" +
               percent(slowest_.sm_share, 0) + ") are at their peak" + longest_stall();
    }
    return "";
  }

 private:
  double intensity() const {
    const WorkSizes& work = profile_.work;
    const bool is_known = work.flops && work.bytes.value_or(0) > 0 && slowest_.tensor_share;
    return is_known ? static_cast<double>(*work.flops) / static_cast<double>(*work.bytes) : 0;
  }

  double tensor_share() const { return slowest_.tensor_share.value_or(0); }

  std::string memory() const {
    return "the memory runs at " + percent(slowest_.memory_share, 0) + " of its peak";
  }

  std::string traffic() const {
    return fixed(profile_.traffic_ratio().value_or(0), 2) + " x the bytes that must move";
  }

  std::string limit() const {
    if (slowest_.block_limits.empty()) {
      return "";
    }
    const BlockLimit& least = slowest_.block_limits.front();
    return ", and " + replaced(least.resource, "_", " ") + " allow " + fixed(least.blocks, 0) +
           (least.blocks == 1 ? " block" : " blocks") + " per SM";
  }

  std::string longest_stall() const {
    return slowest_.stalls.empty()
               ? ""
               : "; warps wait the longest for " + in_words(slowest_.stalls.front()) + ", " +
                     fixed(slowest_.stalls.front().cycles, 1) + " cycles per instruction";
  }

  const VariantProfile& profile_;
  const DiagnosisBounds& bounds_;
  const ProfiledLaunch& slowest_;
};

}  // namespace

std::string_view to_string(DiagnosisRule rule) {
  switch (rule) {
    case DiagnosisRule::ExcessTraffic:
      return "excess_traffic";
    case DiagnosisRule::MemoryPeak:
      return "memory_peak";
    case DiagnosisRule::TensorIdle:
      return "tensor_idle";
    case DiagnosisRule::TensorPeak:
      return "tensor_peak";
    case DiagnosisRule::ComputePeak:
      return "compute_peak";
    case DiagnosisRule::FewBlocks:
      return "few_blocks";
    case DiagnosisRule::Spills:
      return "spills";
    case DiagnosisRule::LowOccupancy:
      return "low_occupancy";
    case DiagnosisRule::Stalls:
      return "stalls";
  }
  return "?";
}

Diagnosis diagnose(const VariantProfile& profile, const DiagnosisBounds& bounds) {
  const Diagnosing diagnosing(profile, bounds);
  const DiagnosisRule rule = diagnosing.rule();
  return {rule, diagnosing.sentence(rule)};
}

}  // namespace cubind::ctl
