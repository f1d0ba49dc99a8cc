#include "tuner/worker/guarded_buffer.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "tuner/verify/setup_memory.hpp"

namespace cubind::worker {

GuardedBuffer::GuardedBuffer(MemoryBudget& budget, const v1::BufferSpec& spec, DType type,
                             std::uint32_t number)
    : name_(spec.name()),
      role_(spec.role()),
      type_(type),
      elements_(spec.elements()),
      bytes_(spec.elements() * size_of(type)),
      align_(std::max<std::uint32_t>(spec.align_bytes(), static_cast<std::uint32_t>(size_of(type)))),
      number_(number) {
  if ((align_ & (align_ - 1)) != 0) {
    throw Error(ErrorCode::InvalidArgument, "buffer " + name_,
                "alignment " + std::to_string(align_) + " is not a power of two");
  }
  memory_ = DeviceMemory(budget, verify::guarded_bytes(bytes_));
  move(Placement::Aligned);
}

void GuardedBuffer::move(Placement placement, std::uint32_t slot) {
  const bool minimal = placement == Placement::Minimal && align_ < verify::kAllocatorAlignment;
  slot_ = slot % (1 + static_cast<std::uint32_t>(further_.size()));
  const DeviceMemory& first = placement == Placement::Minimal && minimal_.bytes() > 0 ? minimal_ : memory_;
  const std::uint64_t lead = minimal ? verify::kRedZoneBytes + align_ : verify::lead_bytes(bytes_);
  address_ = slot_ == 0 ? first.address() + lead : further_[slot_ - 1];
  placement_ = placement;
}

void GuardedBuffer::set_further_slots(MemoryBudget& budget, std::uint32_t count) {
  further_.clear();
  further_memory_.clear();
  const bool together = !verify::begins_page(bytes_);
  const std::uint64_t step = together ? verify::further_slot_bytes(bytes_) : bytes_;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (i == 0 || !together) {
      further_memory_.emplace_back(budget, together ? count * step : step);
    }
    further_.push_back(further_memory_.back().address() + (together ? i * step : 0));
  }
}

void GuardedBuffer::part_placements(MemoryBudget& budget) {
  minimal_ = DeviceMemory(budget, verify::guarded_bytes(bytes_));
}

void GuardedBuffer::fit(MemoryBudget& budget, std::uint64_t bytes) {
  if (memory_.bytes() < verify::guarded_bytes(bytes)) {
    // Emptied first: both may not fit together. If the larger one does not fit either, the trial lacks
    // memory, and the next one finds an empty buffer between its zones.
    bytes_ = 0;
    memory_ = DeviceMemory();
    try {
      memory_ = DeviceMemory(budget, verify::guarded_bytes(bytes));
    } catch (...) {
      memory_ = DeviceMemory(budget, verify::guarded_bytes(0));
      move(placement_);
      throw;
    }
  }
  bytes_ = bytes;
  move(placement_);
}

ZoneOnDevice GuardedBuffer::front_zone() const {
  return {address_ - verify::kRedZoneBytes, verify::kRedZoneBytes, {number_, verify::ZoneSide::Front}};
}

ZoneOnDevice GuardedBuffer::back_zone() const {
  return {address_ + bytes_, verify::kRedZoneBytes, {number_, verify::ZoneSide::Back}};
}

}  // namespace cubind::worker
