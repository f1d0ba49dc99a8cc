// A buffer of a problem on the device, at its first slot between two red zones, and at further slots.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/dtype.hpp"
#include "schemas/worker.pb.h"
#include "tuner/worker/own_kernels.hpp"

namespace cubind::worker {

/// The buffer's start within its allocation.
enum class Placement {
  Aligned,  // as allocators give it, to 256 bytes or, if it is large, to a page: for timing
  Minimal,  // to the declared alignment and no more: for verification, so that a kernel that needs more is
            // caught
};

/// Device memory that is freed with this object.
class GuardedBuffer {
 public:
  /// `number` tells the buffers of a problem apart (below 126). Throws DriverError(OutOfMemory).
  GuardedBuffer(MemoryBudget& budget, const v1::BufferSpec& spec, DType type, std::uint32_t number);

  const std::string& name() const { return name_; }
  v1::Role role() const { return role_; }
  DType type() const { return type_; }
  std::uint64_t elements() const { return elements_; }
  /// The size of the elements; for a scratch buffer, that of the last fit().
  std::uint64_t bytes() const { return bytes_; }
  std::uint32_t align() const { return align_; }
  cuda::DevicePtr address() const { return address_; }
  TypedAddress typed() const { return {address_, type_}; }

  /// Moves the buffer. Its content is undefined at a placement where it was not before; each slot has a
  /// content of its own. `slot` 0 is the first; others are counted round and round.
  void move(Placement placement, std::uint32_t slot = 0);
  /// Replaces those that it has; 0 gives their memory back. Not for scratch, which grows at its only
  /// slot. Throws DriverError(OutOfMemory).
  void set_further_slots(MemoryBudget& budget, std::uint32_t count);
  /// From now on the minimal placement has an allocation of its own: what is at one placement stays while the
  /// buffer is at the other. Throws DriverError(OutOfMemory).
  void part_placements(MemoryBudget& budget);
  /// Scratch alone: the size that a launch plan needs, which differs between configurations. Grows the
  /// allocation if need be; throws DriverError(OutOfMemory) where that does not fit, and is empty then.
  void fit(MemoryBudget& budget, std::uint64_t bytes);

  /// Whether it lies between its zones, as at the first slot.
  bool has_zones() const { return slot_ == 0; }
  ZoneOnDevice front_zone() const;
  ZoneOnDevice back_zone() const;

 private:
  std::string name_;
  v1::Role role_;
  DType type_;
  std::uint64_t elements_;
  std::uint64_t bytes_;
  std::uint32_t align_;
  std::uint32_t number_;
  Placement placement_ = Placement::Aligned;
  DeviceMemory memory_;
  DeviceMemory minimal_;                      // of the minimal placement, once it is parted
  std::vector<DeviceMemory> further_memory_;  // of small buffers one holds all slots
  std::vector<cuda::DevicePtr> further_;      // the slots after the first
  std::uint32_t slot_ = 0;
  cuda::DevicePtr address_ = 0;
};

}  // namespace cubind::worker
