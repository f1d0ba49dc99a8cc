#include "tuner/worker/fenced_memory.hpp"

#include <algorithm>

#include "base/rounding.hpp"

namespace cubind::worker {

FencedMemory::FencedMemory(MemoryBudget& budget, std::uint64_t bytes, std::uint64_t align)
    : FencedMemory(budget) {
  const cuda::DriverApi& api = budget.api();
  const auto require = [&api](cuda::Result result) {
    if (result != cuda::Result::Success) {
      throw cuda::DriverError(api, cuda::Result::OutOfMemory, "memory at the end of a mapping");
    }
  };
  cuda::AllocationProperties properties;
  std::size_t granularity = 0;
  require(api.ctx_get_device(&properties.location.device));
  require(api.mem_get_allocation_granularity(&granularity, &properties, 0));
  const std::uint64_t size = rounded_up<std::uint64_t>(std::max<std::uint64_t>(bytes, 1), granularity);
  budget.take(size);
  taken_bytes_ = size;
  require(api.mem_address_reserve(&reserved_, size + granularity, 0, 0, 0));
  reserved_bytes_ = size + granularity;
  cuda::AllocationHandle memory = 0;
  require(api.mem_create(&memory, size, &properties, 0));
  const cuda::Result mapped = api.mem_map(reserved_, size, 0, memory, 0);
  api.mem_release(memory);  // the mapping keeps it
  require(mapped);
  mapped_ = reserved_;
  const cuda::MemoryAccess access{.location = properties.location};
  require(api.mem_set_access(mapped_, size, &access, 1));
  address_ = mapped_ + size - rounded_up(bytes, align);
}

FencedMemory::~FencedMemory() {
  if (mapped_ != 0) {
    budget_.api().mem_unmap(mapped_, taken_bytes_);
  }
  if (reserved_ != 0) {
    budget_.api().mem_address_free(reserved_, reserved_bytes_);
  }
  budget_.give(taken_bytes_);
}

}  // namespace cubind::worker
