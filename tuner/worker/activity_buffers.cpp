#include "tuner/worker/activity_buffers.hpp"

#include <algorithm>
#include <cstdlib>

namespace cubind::worker {
namespace {

constexpr std::size_t kAlignment = 64;

}  // namespace

void ActivityBuffers::Free::operator()(std::uint8_t* buffer) const { std::free(buffer); }

std::uint8_t* ActivityBuffers::give() {
  {
    const std::lock_guard lock(mutex_);
    if (!unused_.empty()) {
      std::uint8_t* buffer = unused_.back().release();
      unused_.pop_back();
      return buffer;
    }
  }
  auto* buffer = static_cast<std::uint8_t*>(std::aligned_alloc(kAlignment, kBytes));
  if (buffer != nullptr) {
    std::fill_n(buffer, kBytes, std::uint8_t{0});
  }
  return buffer;
}

void ActivityBuffers::take_back(std::uint8_t* buffer) {
  std::fill_n(buffer, kBytes, std::uint8_t{0});
  std::unique_ptr<std::uint8_t[], Free> cleared(buffer);
  const std::lock_guard lock(mutex_);
  unused_.push_back(std::move(cleared));
}

}  // namespace cubind::worker
