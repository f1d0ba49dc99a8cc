// The facts of a GPU and its driver, read without creating a context: this takes no memory, and no process
// appears in NVML's lists.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cuda_api/driver_api.hpp"
#include "cuda_api/nvml_api.hpp"

namespace cubind::cuda {

/// The raw facts that a device class is derived from (the daemon derives it), and the two validators.
struct DeviceFacts {
  std::string name;                 // a label
  std::string uuid;                 // "GPU-8a6f...", as nvidia-smi prints it
  std::uint32_t pci_device_id = 0;  // device and vendor: 0x233510de
  std::uint32_t cc_major = 0, cc_minor = 0;
  std::uint32_t sm_count = 0;
  std::uint64_t l2_bytes = 0;
  std::uint64_t shared_optin_bytes = 0;
  std::uint64_t memory_bytes = 0;
  std::uint32_t memory_bus_bits = 0;
  std::string mig_profile;           // "1g.10gb"; empty: the whole GPU
  std::uint32_t power_limit_mw = 0;  // enforced; 0: unknown (no NVML)
  std::uint32_t max_sm_mhz = 0;
  std::uint32_t max_memory_mhz = 0;
  bool operator==(const DeviceFacts&) const = default;
};

/// Calls `visit(name, value)` for those that v1.DeviceFacts has, under its names.
template <typename Visit>
void visit_facts(const DeviceFacts& facts, const Visit& visit) {
  visit("name", facts.name);
  visit("pci_device_id", facts.pci_device_id);
  visit("cc_major", facts.cc_major);
  visit("cc_minor", facts.cc_minor);
  visit("sm_count", facts.sm_count);
  visit("l2_bytes", facts.l2_bytes);
  visit("shared_optin_bytes", facts.shared_optin_bytes);
  visit("memory_bytes", facts.memory_bytes);
  visit("memory_bus_bits", facts.memory_bus_bits);
  visit("mig_profile", facts.mig_profile);
  visit("power_limit_mw", facts.power_limit_mw);
  visit("max_sm_mhz", facts.max_sm_mhz);
}

struct DriverVersion {
  std::uint32_t cuda = 0;  // 13000 for 13.0
  std::string version;     // "580.159.04"; empty if neither NVML nor /proc tells
  bool operator==(const DriverVersion&) const = default;
};

/// The GPUs that the driver shows this process (CUDA_VISIBLE_DEVICES holds), in its order. Calls cuInit,
/// which a process that will fork must not do. An empty list: there is none. A driver that fails to start
/// throws DriverError.
std::vector<DeviceOrdinal> visible_devices(const DriverApi& driver);

/// `nvml` may be null: then the validators are zero and the bus width is the driver's.
DeviceFacts read_device_facts(const DriverApi& driver, const NvmlApi* nvml, DeviceOrdinal device);
DriverVersion read_driver_version(const DriverApi& driver, const NvmlApi* nvml);

/// The NVML handle of a CUDA device, by UUID and then by PCI bus id; null if NVML does not know it.
NvmlDevice find_nvml_device(const DriverApi& driver, const NvmlApi& nvml, DeviceOrdinal device);

/// The GPU's unused memory, read without a context; 0: NVML does not say, or `device` is null.
std::uint64_t free_memory_bytes(const NvmlApi& nvml, NvmlDevice device);

/// The device of a UUID ("GPU-..." or "MIG-...", or its first characters where they are enough) or of an
/// index among the visible ones; empty is index 0. Throws Error(NotFound) that lists the visible ones.
DeviceOrdinal select_device(const DriverApi& driver, std::string_view gpu);

/// "GPU-8a6f0b2c-..." from the 16 bytes; "MIG-..." for a slice.
std::string format_uuid(const Uuid& uuid, bool mig);

/// "1g.10gb" from "NVIDIA H100 80GB HBM3 MIG 1g.10gb"; empty without " MIG ".
std::string mig_profile_of(std::string_view device_name);

/// "580.159.04" from the first line of /proc/driver/nvidia/version; empty if it has no such number.
std::string version_in_proc_text(std::string_view text);

}  // namespace cubind::cuda
