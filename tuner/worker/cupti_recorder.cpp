#include <cstddef>
#include <mutex>
#include <utility>

#include "tuner/worker/activity_buffers.hpp"
#include "tuner/worker/cupti_library.hpp"
#include "tuner/worker/cupti_timer.hpp"

namespace cubind::worker {
namespace {

// Every version of the record since CUDA 11 has these fields at these places, so a libcupti of 12 serves as
// well as one of 13.
static_assert(offsetof(CUpti_ActivityKernel10, start) == 16 && offsetof(CUpti_ActivityKernel10, end) == 24);
static_assert(offsetof(CUpti_ActivityKernel10, correlationId) == 92);

class Recorder;
// CUPTI's callbacks carry no user pointer. Set while the one recorder lives.
Recorder* the_recorder = nullptr;

class Recorder final : public CuptiRecorder {
 public:
  explicit Recorder(std::unique_ptr<CuptiLibrary> library) : library_(std::move(library)) {
    the_recorder = this;
  }
  ~Recorder() override {
    library_->activity_disable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    library_->activity_flush_all(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    the_recorder = nullptr;
  }

  bool start(std::string& why) {
    // Ours are cleared. A libcupti that does not know this clears them once more.
    std::uint8_t zeroed = 1;
    std::size_t size = sizeof zeroed;
    library_->activity_set_attribute(CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, &size, &zeroed);
    CUptiResult result = library_->activity_register_callbacks(&give_buffer, &take_buffer);
    if (result == CUPTI_SUCCESS) {
      result = library_->activity_enable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    }
    if (result != CUPTI_SUCCESS) {
      why = library_->path + ": " + library_->describe(result);
    }
    return result == CUPTI_SUCCESS;
  }

  // A forced flush gives up the buffer on the device, and the next launch makes another: 190 us of the host
  // on an H200 instead of 5. It is only needed for records that are not complete.
  std::vector<KernelRecord> take(std::size_t expected) override {
    library_->activity_flush_all(0);
    if (count() < expected) {
      library_->activity_flush_all(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    }
    const std::lock_guard lock(mutex_);
    return std::exchange(records_, {});
  }

 private:
  std::size_t count() {
    const std::lock_guard lock(mutex_);
    return records_.size();
  }

  static void CUPTIAPI give_buffer(std::uint8_t** buffer, std::size_t* size, std::size_t* max_records) {
    *buffer = the_recorder == nullptr ? nullptr : the_recorder->buffers_.give();
    *size = *buffer == nullptr ? 0 : ActivityBuffers::kBytes;
    *max_records = 0;  // as many as fit
  }

  static void CUPTIAPI take_buffer(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t,
                                   std::size_t valid) {
    if (the_recorder == nullptr) {
      return;  // CUPTI delivers nothing after the last flush; the buffers are gone
    }
    if (valid > 0) {
      the_recorder->read(buffer, valid);
    }
    the_recorder->buffers_.take_back(buffer);
  }

  void read(std::uint8_t* buffer, std::size_t valid) {
    const std::lock_guard lock(mutex_);
    CUpti_Activity* record = nullptr;
    while (library_->activity_get_next_record(buffer, valid, &record) == CUPTI_SUCCESS) {
      if (record->kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL &&
          record->kind != CUPTI_ACTIVITY_KIND_KERNEL) {
        continue;
      }
      const auto* kernel = reinterpret_cast<const CUpti_ActivityKernel10*>(record);
      records_.push_back({kernel->correlationId, kernel->start, kernel->end});
    }
  }

  std::unique_ptr<CuptiLibrary> library_;
  ActivityBuffers buffers_;
  std::mutex mutex_;                   // CUPTI delivers buffers from a thread of its own
  std::vector<KernelRecord> records_;  // guarded by mutex_
};

}  // namespace

std::unique_ptr<CuptiRecorder> CuptiRecorder::open(std::string& why) {
  std::string tried;
  std::unique_ptr<CuptiLibrary> library = find_cupti(tried);
  if (!library) {
    why = "no CUPTI: " + tried;
    return nullptr;
  }
  auto recorder = std::make_unique<Recorder>(std::move(library));
  if (!recorder->start(why)) {
    return nullptr;
  }
  return recorder;
}

}  // namespace cubind::worker
