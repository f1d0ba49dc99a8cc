#include "tuner/verify/setup_memory.hpp"

#include <algorithm>
#include <array>

#include "base/rounding.hpp"
#include "plan/wire.hpp"
#include "tuner/verify/red_zone.hpp"

namespace cubind::verify {
namespace {

// Used if the driver does not tell the L2's size.
constexpr std::uint64_t kLeastFlush = std::uint64_t{64} << 20;

constexpr double kDefaultFraction = 0.9;

// What a GPU maps at once. cudaMalloc gives a buffer of about half a page or more pages of its own.
constexpr std::uint64_t kPage = std::uint64_t{2} << 20;

// All slots of a problem together, unless one alone takes more.
constexpr std::uint64_t kSlotsBytes = std::uint64_t{4} << 30;
// There are more where they are small: the less a buffer holds, the more its slot changes a kernel's time.
constexpr std::uint64_t kMostLargeSlots = 31;
constexpr std::uint64_t kSmallSlotsBytes = std::uint64_t{64} << 20;
// Primes: going round in equal steps then comes to all slots.
constexpr std::array<std::uint32_t, 14> kSlotCounts = {251, 127, 61, 31, 29, 23, 19, 17, 13, 11, 7, 5, 3, 2};

// Small buffers begin anywhere within kOffsetsBytes, in steps of kOffsetStep, as with an allocator.
constexpr std::uint64_t kOffsetsBytes = 4096;
constexpr std::uint64_t kOffsetStep = 512;

std::uint64_t payload_bytes(const v1::BufferSpec& buffer) {
  const DType type = dtype_from_wire(buffer.type(), "prepare.buffers[" + buffer.name() + "].type");
  return buffer.elements() * size_of(type);
}

// The distribution of a fill with many choices lies in the workspace.
std::uint64_t workspace_bytes(const v1::PrepareProblem& request) {
  std::uint64_t most = kWorkspaceBytes;
  for (const v1::BufferSpec& buffer : request.buffers()) {
    if (buffer.fill().kind() != "choice" || buffer.fill().parameters_size() == 0) {
      continue;
    }
    most = std::max(most, static_cast<std::uint64_t>(buffer.fill().parameters(0)) * sizeof(double));
  }
  return most;
}

}  // namespace

std::uint64_t memory_share(double fraction, std::uint64_t free_bytes) {
  const double share = fraction > 0 ? std::min(fraction, 1.0) : kDefaultFraction;
  return static_cast<std::uint64_t>(share * static_cast<double>(free_bytes));
}

bool begins_page(std::uint64_t payload) { return payload >= kPage / 2; }

std::uint64_t lead_bytes(std::uint64_t payload) { return begins_page(payload) ? kPage : kRedZoneBytes; }

std::uint64_t guarded_bytes(std::uint64_t payload) {
  // The minimal placement starts up to one alignment later.
  return lead_bytes(payload) + payload + kRedZoneBytes + kAllocatorAlignment;
}

std::uint64_t further_slot_bytes(std::uint64_t payload) {
  return begins_page(payload) ? rounded_up(payload, kPage) : rounded_up(payload, kOffsetsBytes) + kOffsetStep;
}

std::uint64_t setup_bytes(const v1::PrepareProblem& request) {
  std::uint64_t total = 0;
  for (const v1::BufferSpec& buffer : request.buffers()) {
    const std::uint64_t payload = payload_bytes(buffer);
    total += guarded_bytes(payload);
    if (buffer.role() != v1::IN && request.reference() != "expected") {
      total += guarded_bytes(payload);
    }
    if (buffer.role() == v1::INOUT) {
      total += payload;
    }
  }
  for (const v1::ExpectedOutput& output : request.expected()) {
    total += output.data().size();
  }
  return total;
}

std::uint64_t slot_bytes(const v1::PrepareProblem& request) {
  std::uint64_t total = 0;
  for (const v1::BufferSpec& buffer : request.buffers()) {
    total += buffer.role() == v1::SCRATCH ? 0 : further_slot_bytes(payload_bytes(buffer));
  }
  return total;
}

std::uint32_t timing_slots(const v1::PrepareProblem& request, std::uint64_t spare_bytes) {
  if (request.policy().warm_l2() || request.policy().graph_launch()) {
    return 1;
  }
  const std::uint64_t each = std::max<std::uint64_t>(slot_bytes(request), 1);
  const std::uint64_t wanted =
      std::max(std::min(kSlotsBytes / each, kMostLargeSlots), kSmallSlotsBytes / each);
  const std::uint64_t most = std::min(wanted, 1 + spare_bytes / each);
  const auto* const count = std::ranges::find_if(kSlotCounts, [&](std::uint32_t n) { return n <= most; });
  return count == kSlotCounts.end() ? 1 : *count;
}

std::uint32_t slot_at(std::uint32_t sample, std::uint32_t buffer, std::uint32_t slots) {
  if (slots < 2) {
    return 0;
  }
  const std::uint32_t shift = buffer % (slots - 1);
  return (sample % slots * (1 + shift) + sample / slots * shift) % slots;
}

std::uint64_t flush_bytes(std::uint64_t l2_bytes) { return std::max(2 * l2_bytes, kLeastFlush); }

std::uint64_t trial_bytes(const v1::PrepareProblem& request, std::uint64_t l2_bytes) {
  return setup_bytes(request) + flush_bytes(l2_bytes) + 2 * workspace_bytes(request);
}

}  // namespace cubind::verify
