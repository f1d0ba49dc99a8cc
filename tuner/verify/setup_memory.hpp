// The memory that a problem takes on a GPU. The device worker allocates by these rules, and the agent
// computes with them before it asks for a problem.
#pragma once

#include <cstdint>

#include "schemas/worker.pb.h"

namespace cubind::verify {

/// The share of the free memory that trials may use; fraction 0: the default, 0.9.
std::uint64_t memory_share(double fraction, std::uint64_t free_bytes);

/// As allocators give it; where a buffer starts within its allocation, see GuardedBuffer.
inline constexpr std::uint64_t kAllocatorAlignment = 256;

/// Whether allocators let a buffer of this size begin a page of the GPU's, as cudaMalloc does.
bool begins_page(std::uint64_t payload);
/// What lies in an allocation before the buffer when it is timed: a red zone, or for a large buffer a page,
/// so that it begins one, as with cudaMalloc.
std::uint64_t lead_bytes(std::uint64_t payload);
/// One buffer's allocation: what lies before it, the buffer, the red zone behind it.
std::uint64_t guarded_bytes(std::uint64_t payload);
/// What one further slot takes. It has no red zones: they would change a kernel's time. Small buffers, side
/// by side in one allocation, begin at another offset from a page of 4 KiB at each slot.
std::uint64_t further_slot_bytes(std::uint64_t payload);

/// The allocations of preparing the problem: each buffer, a second copy of the outputs for the reference, the
/// pristine content of an `inout`, recorded outputs. A scratch buffer is as large as the request says. Throws
/// Error(InvalidArgument) for a type that is not known.
std::uint64_t setup_bytes(const v1::PrepareProblem& request);

/// The buffers at one more slot.
std::uint64_t slot_bytes(const v1::PrepareProblem& request);

/// At how many slots in memory samples of the problem are taken, where `spare_bytes` are left for further
/// ones. Where buffers lie changes the time of a kernel by some per cent, and so does a slot that was used
/// just before; the more they hold, the less. One where the L2 is to stay warm, and where a graph keeps the
/// addresses; else a prime number.
std::uint32_t timing_slots(const v1::PrepareProblem& request, std::uint64_t spare_bytes);
/// Where a buffer of the problem lies for a sample below `slots` squared. Each comes to all slots before it
/// is at one again. Of more than three slots, two buffers lie at each pair of them once: how far they are
/// from each other changes a kernel's time as well.
std::uint32_t slot_at(std::uint32_t sample, std::uint32_t buffer, std::uint32_t slots);

/// The buffer that flushes an L2 of this size.
std::uint64_t flush_bytes(std::uint64_t l2_bytes);

/// The least that the worker's own kernels allocate.
inline constexpr std::uint64_t kWorkspaceBytes = std::uint64_t{1} << 20;

/// The allocations while trials run on the problem: its setup, the flush, the workspace of the worker's own
/// kernels (twice: it grows by a second one).
std::uint64_t trial_bytes(const v1::PrepareProblem& request, std::uint64_t l2_bytes);

}  // namespace cubind::verify
