#include "tuner/spec/occupancy.hpp"

#include <algorithm>
#include <array>
#include <iterator>

#include "base/rounding.hpp"

namespace cubind {
namespace {

constexpr std::uint32_t kWarp = 32;
constexpr std::uint32_t kRegisters = 65536;      // an SM
constexpr std::uint32_t kRegistersAtOnce = 256;  // a warp's are allocated in steps of so many
constexpr std::uint32_t kWarpsAtOnce = 4;        // an SM has four parts, each with its registers
constexpr std::uint64_t kSharedAtOnce = 128;

// From "Technical Specifications per Compute Capability" in the CUDA C++ Programming Guide.
struct SmLimits {
  std::uint32_t cc;
  std::uint32_t threads, blocks;
  std::uint64_t shared_kib;
  std::uint64_t reserved_bytes;  // of shared memory, for each block
};
constexpr std::array<SmLimits, 8> kLimits{{
    {75, 1024, 16, 64, 0},
    {80, 2048, 32, 164, 1024},
    {86, 1536, 16, 100, 1024},
    {87, 1536, 16, 164, 1024},
    {89, 1536, 24, 100, 1024},
    {90, 2048, 32, 228, 1024},
    {100, 2048, 32, 228, 1024},
    {120, 1536, 24, 100, 1024},
}};

const SmLimits* limits_of(std::uint32_t cc_major, std::uint32_t cc_minor) {
  const auto found = std::ranges::find(kLimits, cc_major * 10 + cc_minor, &SmLimits::cc);
  return found == kLimits.end() ? nullptr : &*found;
}

}  // namespace

std::uint64_t shared_optin_bytes(std::uint32_t capability) {
  const auto after = std::ranges::upper_bound(kLimits, capability, {}, &SmLimits::cc);
  const SmLimits& limits = after == kLimits.begin() ? *after : *std::prev(after);
  return limits.shared_kib * 1024 - limits.reserved_bytes;
}

std::optional<std::uint32_t> blocks_per_sm(std::uint32_t cc_major, std::uint32_t cc_minor,
                                           const BlockNeeds& block) {
  const SmLimits* limits = limits_of(cc_major, cc_minor);
  if (limits == nullptr || block.threads == 0) {
    return std::nullopt;
  }
  const std::uint32_t warps = rounded_up(block.threads, kWarp) / kWarp;
  std::uint32_t blocks = std::min(limits->blocks, limits->threads / kWarp / warps);
  if (block.registers > 0) {
    const std::uint32_t of_warp = rounded_up(block.registers * kWarp, kRegistersAtOnce);
    blocks = std::min(blocks, kRegisters / of_warp / kWarpsAtOnce * kWarpsAtOnce / warps);
  }
  const std::uint64_t shared = rounded_up(block.shared_bytes + limits->reserved_bytes, kSharedAtOnce);
  if (shared > 0) {
    blocks = static_cast<std::uint32_t>(std::min<std::uint64_t>(blocks, limits->shared_kib * 1024 / shared));
  }
  return blocks;
}

std::optional<double> occupancy(std::uint32_t cc_major, std::uint32_t cc_minor, const BlockNeeds& block) {
  const auto blocks = blocks_per_sm(cc_major, cc_minor, block);
  if (!blocks) {
    return std::nullopt;
  }
  const std::uint32_t threads = rounded_up(block.threads, kWarp);
  return static_cast<double>(*blocks * threads) / limits_of(cc_major, cc_minor)->threads;
}

}  // namespace cubind
