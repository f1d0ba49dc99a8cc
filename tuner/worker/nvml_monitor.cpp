#include "tuner/worker/nvml_monitor.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <optional>

namespace cubind::worker {
namespace {

using cuda::NvmlResult;

using ListProcesses = NvmlResult (*)(cuda::NvmlDevice, unsigned*, cuda::NvmlProcess*);
constexpr unsigned kMaxProcesses = 256;

void add_processes(ListProcesses list, cuda::NvmlDevice device, std::vector<std::uint32_t>& processes) {
  if (list == nullptr) {
    return;
  }
  std::vector<cuda::NvmlProcess> infos(kMaxProcesses);
  unsigned count = kMaxProcesses;
  if (list(device, &count, infos.data()) != NvmlResult::Success) {
    return;
  }
  for (unsigned i = 0; i < std::min(count, kMaxProcesses); ++i) {
    processes.push_back(infos[i].pid);
  }
}

// All that NVML remembers of processes that have not ended, as a worker before this one has. Absent: it does
// not tell.
std::optional<std::vector<WorkSample>> work_samples(const cuda::NvmlApi& nvml, cuda::NvmlDevice device) {
  if (nvml.device_get_process_utilization == nullptr) {
    return std::nullopt;
  }
  constexpr unsigned long long kFromTheFirst = 0;
  unsigned count = 0;
  NvmlResult result = nvml.device_get_process_utilization(device, nullptr, &count, kFromTheFirst);
  std::vector<cuda::NvmlProcessSample> read(count);
  if (result == NvmlResult::Success || result == NvmlResult::InsufficientSize) {
    result = nvml.device_get_process_utilization(device, read.data(), &count, kFromTheFirst);
  }
  if (result == NvmlResult::NotFound) {
    return std::vector<WorkSample>();
  }
  if (result != NvmlResult::Success || count > read.size()) {
    return std::nullopt;
  }
  read.resize(count);
  std::vector<WorkSample> samples;
  for (const cuda::NvmlProcessSample& sample : read) {
    const bool has_worked = sample.sm + sample.memory + sample.encoder + sample.decoder > 0;
    if (has_worked && may_live(sample.pid)) {
      samples.push_back({sample.pid, sample.time_stamp});
    }
  }
  return samples;
}

std::uint64_t used_memory(const cuda::NvmlApi& nvml, cuda::NvmlDevice device) {
  // The newer call leaves out what the driver reserves for itself.
  cuda::NvmlMemoryV2 v2{};
  v2.version = cuda::kNvmlMemoryV2Version;
  if (nvml.device_get_memory_v2 != nullptr && nvml.device_get_memory_v2(device, &v2) == NvmlResult::Success) {
    return v2.used;
  }
  cuda::NvmlMemory v1{};
  if (nvml.device_get_memory != nullptr && nvml.device_get_memory(device, &v1) == NvmlResult::Success) {
    return v1.used;
  }
  return 0;
}

std::uint32_t clock(const cuda::NvmlApi& nvml, cuda::NvmlDevice device, cuda::NvmlClock which) {
  unsigned mhz = 0;
  const bool told =
      nvml.device_get_clock != nullptr && nvml.device_get_clock(device, which, &mhz) == NvmlResult::Success;
  return told ? mhz : 0;
}

}  // namespace

std::uint32_t NvmlMonitor::sm_mhz() const {
  return device_ == nullptr ? 0 : clock(*nvml_, device_, cuda::NvmlClock::Sm);
}

Conditions NvmlMonitor::conditions() const {
  Conditions now;
  if (device_ == nullptr) {
    return now;
  }
  now.set_sm_mhz(clock(*nvml_, device_, cuda::NvmlClock::Sm));
  now.set_memory_mhz(clock(*nvml_, device_, cuda::NvmlClock::Memory));
  constexpr int kGpuSensor = 0;
  unsigned value = 0;
  if (nvml_->device_get_temperature != nullptr &&
      nvml_->device_get_temperature(device_, kGpuSensor, &value) == NvmlResult::Success) {
    now.set_temperature_c(value);
  }
  if (nvml_->device_get_power_usage != nullptr &&
      nvml_->device_get_power_usage(device_, &value) == NvmlResult::Success) {
    now.set_power_mw(value);
  }
  unsigned long long reasons = 0;
  if (nvml_->device_get_throttle_reasons != nullptr &&
      nvml_->device_get_throttle_reasons(device_, &reasons) == NvmlResult::Success) {
    now.set_throttle_reasons(reasons);
  }
  return now;
}

GpuUse NvmlMonitor::use() const {
  GpuUse use;
  if (device_ == nullptr) {
    return use;
  }
  add_processes(nvml_->device_get_compute_processes, device_, use.processes);
  add_processes(nvml_->device_get_graphics_processes, device_, use.processes);
  std::ranges::sort(use.processes);
  const auto doubled = std::ranges::unique(use.processes);
  use.processes.erase(doubled.begin(), doubled.end());
  use.memory_bytes = used_memory(*nvml_, device_);
  cuda::NvmlUtilization utilization{};
  if (nvml_->device_get_utilization != nullptr &&
      nvml_->device_get_utilization(device_, &utilization) == NvmlResult::Success) {
    use.utilization_percent = utilization.gpu;
  }
  return use;
}

IdleTimes NvmlMonitor::idle_times(const std::vector<std::uint32_t>& listed) const {
  std::vector<std::uint32_t> own;
  std::ranges::copy_if(listed, std::back_inserter(own),
                       [this](std::uint32_t process) { return own_.contain(process); });
  if (device_ == nullptr || own.empty()) {
    return {};
  }
  const auto samples = work_samples(*nvml_, device_);
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto now_us = std::chrono::duration_cast<std::chrono::microseconds>(now).count();
  return samples ? worker::idle_times(listed, own, *samples, static_cast<std::uint64_t>(now_us))
                 : IdleTimes();
}

}  // namespace cubind::worker
