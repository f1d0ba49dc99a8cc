#include "cuda_api/device_facts.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>

namespace cubind::cuda {
namespace {

std::uint32_t attribute(const DriverApi& driver, DeviceAttribute which, DeviceOrdinal device) {
  int value = 0;
  check(driver, driver.device_get_attribute(&value, which, device),
        "cuDeviceGetAttribute " + std::to_string(static_cast<int>(which)));
  return static_cast<std::uint32_t>(value);
}

std::string device_name(const DriverApi& driver, DeviceOrdinal device) {
  std::array<char, 256> name{};
  check(driver, driver.device_get_name(name.data(), static_cast<int>(name.size()), device),
        "cuDeviceGetName");
  return name.data();
}

std::string device_uuid(const DriverApi& driver, DeviceOrdinal device) {
  Uuid uuid{};
  check(driver, driver.device_get_uuid(&uuid, device), "cuDeviceGetUuid");
  return format_uuid(uuid, !mig_profile_of(device_name(driver, device)).empty());
}

// Attribute 139 is younger than some drivers that are served; NVML has always known.
std::uint32_t pci_device_id(const DriverApi& driver, const NvmlApi* nvml, NvmlDevice handle,
                            DeviceOrdinal device) {
  int value = 0;
  if (driver.device_get_attribute(&value, DeviceAttribute::PciDeviceId, device) == Result::Success &&
      value != 0) {
    return static_cast<std::uint32_t>(value);
  }
  NvmlPci pci{};
  if (handle != nullptr && nvml->device_get_pci_info != nullptr &&
      nvml->device_get_pci_info(handle, &pci) == NvmlResult::Success) {
    return pci.pci_device_id;
  }
  return 0;
}

void read_validators(const NvmlApi& nvml, NvmlDevice handle, DeviceFacts& facts) {
  const auto ask = [&](auto function, auto... arguments) {
    unsigned value = 0;
    const bool told = function != nullptr && function(handle, arguments..., &value) == NvmlResult::Success;
    return told ? value : 0U;
  };
  facts.power_limit_mw = ask(nvml.device_get_enforced_power_limit);
  facts.max_sm_mhz = ask(nvml.device_get_max_clock, NvmlClock::Sm);
  facts.max_memory_mhz = ask(nvml.device_get_max_clock, NvmlClock::Memory);
}

std::string driver_version_text(const NvmlApi* nvml) {
  std::array<char, 96> text{};
  if (nvml != nullptr && nvml->system_get_driver_version != nullptr &&
      nvml->system_get_driver_version(text.data(), static_cast<unsigned>(text.size())) ==
          NvmlResult::Success) {
    return text.data();
  }
  std::ifstream file("/proc/driver/nvidia/version");
  std::string line;
  std::getline(file, line);
  return version_in_proc_text(line);
}

}  // namespace

std::string format_uuid(const Uuid& uuid, bool mig) {
  std::string text = mig ? "MIG-" : "GPU-";
  for (std::size_t i = 0; i < sizeof uuid.bytes; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) {
      text += '-';
    }
    std::array<char, 3> hex{};
    std::snprintf(hex.data(), hex.size(), "%02x",
                  static_cast<unsigned>(static_cast<unsigned char>(uuid.bytes[i])));
    text += hex.data();
  }
  return text;
}

std::string mig_profile_of(std::string_view device_name) {
  constexpr std::string_view kMark = " MIG ";
  const std::size_t at = device_name.find(kMark);
  return at == std::string_view::npos ? "" : std::string(device_name.substr(at + kMark.size()));
}

std::string version_in_proc_text(std::string_view text) {
  // "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  Tue ...", and longer for the open module.
  const auto is_version_character = [](char c) { return (c >= '0' && c <= '9') || c == '.'; };
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    bool version = word.find('.') != std::string_view::npos && word.front() != '.' && word.back() != '.';
    for (const char c : word) {
      version = version && is_version_character(c);
    }
    if (version) {
      return std::string(word);
    }
    begin = end + 1;
  }
  return {};
}

std::vector<DeviceOrdinal> visible_devices(const DriverApi& driver) {
  const Result result = driver.init(0);
  if (result == Result::NoDevice) {
    return {};
  }
  check(driver, result, "cuInit");
  int count = 0;
  check(driver, driver.device_get_count(&count), "cuDeviceGetCount");
  std::vector<DeviceOrdinal> devices(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    check(driver, driver.device_get(&devices[static_cast<std::size_t>(i)], i), "cuDeviceGet");
  }
  return devices;
}

NvmlDevice find_nvml_device(const DriverApi& driver, const NvmlApi& nvml, DeviceOrdinal device) {
  NvmlDevice handle = nullptr;
  const std::string uuid = device_uuid(driver, device);
  if (nvml.device_get_handle_by_uuid != nullptr &&
      nvml.device_get_handle_by_uuid(uuid.c_str(), &handle) == NvmlResult::Success) {
    return handle;
  }
  std::array<char, 32> bus_id{};
  if (nvml.device_get_handle_by_pci_bus_id != nullptr &&
      driver.device_get_pci_bus_id(bus_id.data(), static_cast<int>(bus_id.size()), device) ==
          Result::Success &&
      nvml.device_get_handle_by_pci_bus_id(bus_id.data(), &handle) == NvmlResult::Success) {
    return handle;
  }
  return nullptr;
}

std::uint64_t free_memory_bytes(const NvmlApi& nvml, NvmlDevice device) {
  NvmlMemory memory{};
  const bool told = device != nullptr && nvml.device_get_memory != nullptr &&
                    nvml.device_get_memory(device, &memory) == NvmlResult::Success;
  return told ? memory.free : 0;
}

DeviceFacts read_device_facts(const DriverApi& driver, const NvmlApi* nvml, DeviceOrdinal device) {
  NvmlDevice handle = nvml != nullptr ? find_nvml_device(driver, *nvml, device) : nullptr;
  DeviceFacts facts;
  facts.name = device_name(driver, device);
  facts.uuid = device_uuid(driver, device);
  facts.mig_profile = mig_profile_of(facts.name);
  facts.pci_device_id = pci_device_id(driver, nvml, handle, device);
  facts.cc_major = attribute(driver, DeviceAttribute::ComputeCapabilityMajor, device);
  facts.cc_minor = attribute(driver, DeviceAttribute::ComputeCapabilityMinor, device);
  facts.sm_count = attribute(driver, DeviceAttribute::MultiprocessorCount, device);
  facts.l2_bytes = attribute(driver, DeviceAttribute::L2CacheBytes, device);
  facts.shared_optin_bytes = attribute(driver, DeviceAttribute::MaxSharedPerBlockOptin, device);
  facts.memory_bus_bits = attribute(driver, DeviceAttribute::MemoryBusWidthBits, device);
  std::size_t memory = 0;
  check(driver, driver.device_total_mem(&memory, device), "cuDeviceTotalMem");
  facts.memory_bytes = memory;
  if (handle != nullptr) {
    read_validators(*nvml, handle, facts);
  }
  return facts;
}

DriverVersion read_driver_version(const DriverApi& driver, const NvmlApi* nvml) {
  int cuda = 0;
  check(driver, driver.driver_get_version(&cuda), "cuDriverGetVersion");
  return {static_cast<std::uint32_t>(cuda), driver_version_text(nvml)};
}

DeviceOrdinal select_device(const DriverApi& driver, std::string_view gpu) {
  const std::vector<DeviceOrdinal> devices = visible_devices(driver);
  std::string known;
  std::vector<DeviceOrdinal> matches;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const std::string uuid = device_uuid(driver, devices[i]);
    const bool by_uuid = gpu.size() > 4 && uuid.starts_with(gpu);
    const bool by_index = gpu.empty() ? i == 0 : gpu == std::to_string(i);
    if (by_uuid || by_index) {
      matches.push_back(devices[i]);
    }
    known += (i == 0 ? "" : ", ") + std::to_string(i) + " " + uuid;
  }
  if (matches.size() == 1) {
    return matches.front();
  }
  throw Error(ErrorCode::NotFound, "GPU \"" + std::string(gpu) + "\"",
              std::string(matches.empty() ? "not visible" : "ambiguous") +
                  "; visible: " + (known.empty() ? "none" : known));
}

}  // namespace cubind::cuda
