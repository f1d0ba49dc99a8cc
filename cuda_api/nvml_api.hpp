// NVML, opened at run time. Its readings are evidence and consent. No part of cubind fails because one
// function is missing, so each member may be null. The structs are NVML's, declared by hand and held against
// nvml.h in tuner/worker.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

struct nvmlDevice_st;

namespace cubind::cuda {

using NvmlDevice = nvmlDevice_st*;

enum class NvmlResult : int {
  Success = 0,
  NotSupported = 3,
  NoPermission = 4,
  NotFound = 6,
  InsufficientSize = 7
};
enum class NvmlClock : int { Sm = 1, Memory = 2 };

struct NvmlMemory {
  unsigned long long total, free, used;
};

/// `used` does not count the driver's own reserve.
struct NvmlMemoryV2 {
  unsigned version;
  unsigned long long total, reserved, free, used;
};
inline constexpr unsigned kNvmlMemoryV2Version = sizeof(NvmlMemoryV2) | (2U << 24);

struct NvmlUtilization {
  unsigned gpu, memory;  // percent of the last sample period
};

struct NvmlProcess {
  unsigned pid;
  unsigned long long used_memory;
  unsigned gpu_instance, compute_instance;
};

/// The last time at which a process worked.
struct NvmlProcessSample {
  unsigned pid;
  unsigned long long time_stamp;  // microseconds, by NVML's clock
  unsigned sm, memory, encoder, decoder;
};

struct NvmlPci {
  char bus_id_legacy[16];
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];
};

/// Bits of the clock event (throttle) reasons that cubind tells apart.
inline constexpr unsigned long long kThrottleGpuIdle = 0x1;
inline constexpr unsigned long long kThrottleSoftwarePowerCap = 0x4;
inline constexpr unsigned long long kThrottleHardwareSlowdown = 0x8;
inline constexpr unsigned long long kThrottleSoftwareThermal = 0x20;
inline constexpr unsigned long long kThrottleHardwareThermal = 0x40;
inline constexpr unsigned long long kThrottleHardwarePowerBrake = 0x80;

// clang-format off
#define CUBIND_NVML_FUNCTIONS(X) \
    X(init, nvmlInit_v2, ()) \
    X(shutdown, nvmlShutdown, ()) \
    X(system_get_driver_version, nvmlSystemGetDriverVersion, (char*, unsigned)) \
    X(device_get_handle_by_uuid, nvmlDeviceGetHandleByUUID, (const char*, NvmlDevice*)) \
    X(device_get_handle_by_pci_bus_id, nvmlDeviceGetHandleByPciBusId_v2, (const char*, NvmlDevice*)) \
    X(device_get_pci_info, nvmlDeviceGetPciInfo_v3, (NvmlDevice, NvmlPci*)) \
    X(device_get_enforced_power_limit, nvmlDeviceGetEnforcedPowerLimit, (NvmlDevice, unsigned*)) \
    X(device_get_max_clock, nvmlDeviceGetMaxClockInfo, (NvmlDevice, NvmlClock, unsigned*)) \
    X(device_get_clock, nvmlDeviceGetClockInfo, (NvmlDevice, NvmlClock, unsigned*)) \
    X(device_get_temperature, nvmlDeviceGetTemperature, (NvmlDevice, int, unsigned*)) \
    X(device_get_power_usage, nvmlDeviceGetPowerUsage, (NvmlDevice, unsigned*)) \
    X(device_get_throttle_reasons, nvmlDeviceGetCurrentClocksThrottleReasons, (NvmlDevice, unsigned long long*)) \
    X(device_get_compute_processes, nvmlDeviceGetComputeRunningProcesses_v3, (NvmlDevice, unsigned*, NvmlProcess*)) \
    X(device_get_graphics_processes, nvmlDeviceGetGraphicsRunningProcesses_v3, (NvmlDevice, unsigned*, NvmlProcess*)) \
    X(device_get_process_utilization, nvmlDeviceGetProcessUtilization, (NvmlDevice, NvmlProcessSample*, unsigned*, unsigned long long)) \
    X(device_get_memory, nvmlDeviceGetMemoryInfo, (NvmlDevice, NvmlMemory*)) \
    X(device_get_memory_v2, nvmlDeviceGetMemoryInfo_v2, (NvmlDevice, NvmlMemoryV2*)) \
    X(device_get_utilization, nvmlDeviceGetUtilizationRates, (NvmlDevice, NvmlUtilization*))
// clang-format on

struct NvmlApi {
#define CUBIND_DECLARE(member, exported, parameters) NvmlResult(*member) parameters = nullptr;
  CUBIND_NVML_FUNCTIONS(CUBIND_DECLARE)
#undef CUBIND_DECLARE

  std::string library;  // the file that was opened
};

/// Where NVML is looked for.
std::vector<std::string> nvml_candidates();

/// Loaded and initialized; nvmlShutdown runs when the last copy goes. Null if there is none or it does not
/// initialize; `tried` then says why.
std::shared_ptr<const NvmlApi> find_nvml(std::string& tried,
                                         const std::vector<std::string>& candidates = nvml_candidates());

}  // namespace cubind::cuda
