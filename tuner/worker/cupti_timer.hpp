// The timer of choice: CUPTI's activity records, the GPU's own stamps of each kernel's start and end. Launch
// overhead, gaps and what runs before a sample are not in them.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "tuner/worker/timer.hpp"

namespace cubind::worker {

/// Collects the records of kernels from the moment it is made. One may exist in a process.
class CuptiRecorder {
 public:
  /// Make it before the context, or CUPTI misses the context. Null if CUPTI is missing or denied; `why` then
  /// says so.
  static std::unique_ptr<CuptiRecorder> open(std::string& why);
  virtual ~CuptiRecorder() = default;

  struct KernelRecord {
    std::uint32_t correlation = 0;  // grows with each launch
    std::uint64_t start_ns = 0, end_ns = 0;
  };
  /// The records of all kernels that have ended since the last call; `expected`: there are at least
  /// so many. The stream must be idle.
  virtual std::vector<KernelRecord> take(std::size_t expected) = 0;
};

class CuptiTimer final : public Timer {
 public:
  /// Measures the tick. Throws Error(Unavailable) if records do not come: the graph timer then takes over.
  CuptiTimer(DriverContext& context, OwnKernels& kernels, CuptiRecorder& recorder);
  ~CuptiTimer() override;

  std::string name() const override { return "cupti"; }
  double tick_us() const override { return tick_us_; }
  std::vector<double> measure(const TimedWork& work, unsigned samples) override {
    return measure_each({&work, 1}, samples).front();
  }
  std::vector<std::vector<double>> measure_each(std::span<const TimedWork> works, unsigned samples) override;

 private:
  void run_sample(const TimedWork& work, const InstantiatedGraph* graph);
  std::vector<std::vector<double>> read(std::span<const TimedWork> works, unsigned samples);

  DriverContext& context_;
  OwnKernels& kernels_;
  CuptiRecorder& recorder_;
  double tick_us_ = 0;
  /// The gate: a word of host memory that the stream waits for.
  std::uint32_t* gate_ = nullptr;
  cuda::DevicePtr gate_on_device_ = 0;
  std::uint32_t gate_count_ = 0;
};

}  // namespace cubind::worker
