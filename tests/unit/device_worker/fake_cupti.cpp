// A libcupti without CUDA: tests queue records of kernels by fake_kernels().
#include <cupti.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "fake_cupti.hpp"

namespace {

cubind::worker::FakeCupti state;
CUpti_BuffersCallbackRequestFunc ask = nullptr;
CUpti_BuffersCallbackCompleteFunc deliver = nullptr;
std::vector<CUpti_ActivityKernel10> queued;
bool complete = true;
std::uint32_t correlation = 0;

void deliver_one() {
  std::uint8_t* buffer = nullptr;
  std::size_t size = 0;
  std::size_t most = 0;
  ask(&buffer, &size, &most);
  if (buffer == nullptr) {
    return;
  }
  state.unclean += std::all_of(buffer, buffer + size, [](std::uint8_t byte) { return byte == 0; }) ? 0 : 1;
  const std::size_t fit = std::min(queued.size(), size / sizeof queued.front());
  std::memcpy(buffer, queued.data(), fit * sizeof queued.front());
  queued.erase(queued.begin(), queued.begin() + static_cast<std::ptrdiff_t>(fit));
  ++state.delivered;
  deliver(nullptr, 0, buffer, size, fit * sizeof(CUpti_ActivityKernel10));
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): CUPTI's names
extern "C" {

void fake_state(cubind::worker::FakeCupti* to) { *to = state; }

/// The records of so many kernels. While the last of them is not complete, a flush must be forced.
void fake_kernels(std::size_t count, bool are_complete) {
  for (std::size_t i = 0; i < count; ++i) {
    CUpti_ActivityKernel10 record{};
    record.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    record.correlationId = ++correlation;
    record.start = 100 * correlation;
    record.end = record.start + 7;
    queued.push_back(record);
  }
  complete = are_complete;
}

CUptiResult cuptiActivityEnable(CUpti_ActivityKind) { return CUPTI_SUCCESS; }
CUptiResult cuptiActivityDisable(CUpti_ActivityKind) { return CUPTI_SUCCESS; }
CUptiResult cuptiGetResultString(CUptiResult, const char** text) {
  *text = "fake";
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivitySetAttribute(CUpti_ActivityAttribute which, std::size_t*, void* value) {
  if (which == CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER) {
    state.gives_zeros = *static_cast<std::uint8_t*>(value) != 0;
  }
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc requested,
                                           CUpti_BuffersCallbackCompleteFunc completed) {
  ask = requested;
  deliver = completed;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityFlushAll(std::uint32_t flag) {
  ++state.flushes;
  state.forced += flag == CUPTI_ACTIVITY_FLAG_FLUSH_FORCED ? 1 : 0;
  if (complete || flag == CUPTI_ACTIVITY_FLAG_FLUSH_FORCED) {
    while (!queued.empty()) {
      deliver_one();
    }
  }
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityGetNextRecord(std::uint8_t* buffer, std::size_t valid, CUpti_Activity** record) {
  auto* next =
      *record == nullptr ? buffer : reinterpret_cast<std::uint8_t*>(*record) + sizeof(CUpti_ActivityKernel10);
  if (next >= buffer + valid) {
    return CUPTI_ERROR_MAX_LIMIT_REACHED;
  }
  *record = reinterpret_cast<CUpti_Activity*>(next);
  return CUPTI_SUCCESS;
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
