#include "tests/unit/device_worker/host_driver.hpp"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <set>
#include <span>

#include "plan/dtype.hpp"
#include "tests/support/host_verification.hpp"

namespace cubind::test {
namespace {

using cuda::DevicePtr;
using cuda::Result;

struct HostDevice {
  std::map<std::string, int> launched, launched_while_profiled;
  bool profiled = false;
  std::map<std::string, std::vector<float>> variables;
  std::set<std::string> names;  // a function is the address of its name
  DevicePtr last_filled = 0, last_hashed = 0;
  std::array<double, 2> last_fill{};
  int last_grain_bits = 0;
  float last_scalar = 0;
  std::array<DevicePtr, 2> last_pointers{}, last_mapping_ends{};
  std::uint64_t allocations_left = UINT64_MAX;
};
HostDevice host_device;

// The layouts of device_kernels.cu.
struct Zone {
  DevicePtr bytes;
  std::uint64_t size;
  std::uint32_t buffer, side;
};
struct ZoneResult {
  std::uint64_t first_offset, changed;
};

void* at(DevicePtr address) { return reinterpret_cast<void*>(address); }  // NOLINT: the host's memory

template <typename T>
T argument(void** arguments, int index) {
  T value;
  std::memcpy(&value, arguments[index], sizeof value);
  return value;
}

std::span<std::byte> bytes_of(const Zone& zone) {
  return {static_cast<std::byte*>(at(zone.bytes)), zone.size};
}

verify::Zone named(const Zone& zone) { return {zone.buffer, static_cast<verify::ZoneSide>(zone.side)}; }

void fill(void** arguments) {
  host_device.last_filled = argument<DevicePtr>(arguments, 0);
  const auto size = argument<std::uint64_t>(arguments, 1) * size_of(argument<DType>(arguments, 2));
  host_device.last_fill = {argument<double>(arguments, 4), argument<double>(arguments, 5)};
  host_device.last_grain_bits = argument<int>(arguments, 9);
  const auto seed = argument<std::uint64_t>(arguments, 6);
  const std::span bytes(static_cast<unsigned char*>(at(host_device.last_filled)), size);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<unsigned char>(seed + 7 * i);
  }
}

void paint_zones(void** arguments, unsigned count) {
  const std::span zones(static_cast<const Zone*>(at(argument<DevicePtr>(arguments, 0))), count);
  for (const Zone& zone : zones) {
    verify::paint_red_zone(bytes_of(zone), named(zone));
  }
}

void check_zones(void** arguments, unsigned count) {
  const std::span zones(static_cast<const Zone*>(at(argument<DevicePtr>(arguments, 0))), count);
  auto* results = static_cast<ZoneResult*>(at(argument<DevicePtr>(arguments, 1)));
  for (const Zone& zone : zones) {
    const auto damage = verify::check_red_zone(bytes_of(zone), named(zone));
    *results++ = damage ? ZoneResult{damage->first_offset, damage->bytes} : ZoneResult{~std::uint64_t{0}, 0};
  }
}

void hash(void** arguments) {
  host_device.last_hashed = argument<DevicePtr>(arguments, 0);
  const std::string_view bytes(static_cast<const char*>(at(host_device.last_hashed)),
                               argument<std::uint64_t>(arguments, 1));
  *static_cast<std::uint64_t*>(at(argument<DevicePtr>(arguments, 2))) = std::hash<std::string_view>{}(bytes);
}

Result launch(cuda::Function function, unsigned, unsigned rows, unsigned, unsigned, unsigned, unsigned,
              unsigned, cuda::Stream, void** arguments, void**) {
  const auto& name = *reinterpret_cast<const std::string*>(function);  // NOLINT: as get_function() made it
  ++host_device.launched[name];
  if (host_device.profiled) {
    ++host_device.launched_while_profiled[name];
  }
  if (name == "cubind_fill") {
    fill(arguments);
  } else if (name == "cubind_paint_zones") {
    paint_zones(arguments, rows);
  } else if (name == "cubind_check_zones") {
    check_zones(arguments, rows);
  } else if (name == "cubind_hash") {
    hash(arguments);
  } else if (name == "one_scalar") {
    host_device.last_scalar = argument<float>(arguments, 0);
  } else if (name == "two_pointers") {
    host_device.last_pointers = {argument<DevicePtr>(arguments, 0), argument<DevicePtr>(arguments, 1)};
  }
  return Result::Success;
}

Result get_function(cuda::Function* function, cuda::Module, const char* name) {
  const std::string& kept = *host_device.names.insert(name).first;
  *function = reinterpret_cast<cuda::Function>(const_cast<std::string*>(&kept));  // NOLINT: a handle
  return Result::Success;
}

Result get_variable(DevicePtr* address, std::size_t* bytes, cuda::Module, const char* name) {
  std::vector<float>& content = host_device.variables.try_emplace(name, 3).first->second;
  *address = reinterpret_cast<DevicePtr>(content.data());  // NOLINT: the host's memory
  *bytes = content.size() * sizeof(float);
  return Result::Success;
}

Result take_allocation() {
  if (host_device.allocations_left == 0) {
    return Result::OutOfMemory;
  }
  --host_device.allocations_left;
  return Result::Success;
}

Result allocate(DevicePtr* address, std::size_t bytes) {
  if (take_allocation() != Result::Success) {
    return Result::OutOfMemory;
  }
  *address = reinterpret_cast<DevicePtr>(std::aligned_alloc(256, (bytes + 255) / 256 * 256));
  return Result::Success;
}

// What is mapped can be read; at the end of a reservation nothing is.
void set_mapping_functions(cuda::DriverApi& api) {
  api.mem_get_allocation_granularity = [](std::size_t* bytes, const cuda::AllocationProperties*, int) {
    *bytes = kGranularity;
    return Result::Success;
  };
  api.mem_address_reserve = [](DevicePtr* address, std::size_t bytes, std::size_t, DevicePtr,
                               unsigned long long) {
    void* const reserved = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *address = reinterpret_cast<DevicePtr>(reserved);  // NOLINT: the host's memory
    host_device.last_mapping_ends[1] = *address + bytes;
    return reserved == MAP_FAILED ? Result::OutOfMemory : Result::Success;
  };
  api.mem_create = [](cuda::AllocationHandle*, std::size_t, const cuda::AllocationProperties*,
                      unsigned long long) { return take_allocation(); };
  api.mem_map = [](DevicePtr address, std::size_t bytes, std::size_t, cuda::AllocationHandle,
                   unsigned long long) {
    ::mprotect(at(address), bytes, PROT_READ | PROT_WRITE);
    host_device.last_mapping_ends[0] = address + bytes;
    return Result::Success;
  };
  api.mem_unmap = [](DevicePtr address, std::size_t bytes) {
    ::mprotect(at(address), bytes, PROT_NONE);
    return Result::Success;
  };
  api.mem_address_free = [](DevicePtr address, std::size_t bytes) {
    ::munmap(at(address), bytes);
    return Result::Success;
  };
}

template <typename... Parameters>
Result succeed(Parameters... /*unused*/) {
  return Result::Success;
}

void set_memory_functions(cuda::DriverApi& api) {
  api.mem_alloc = allocate;
  api.mem_free = [](DevicePtr address) {
    std::free(at(address));
    return Result::Success;
  };
  api.memcpy_htod_async = [](DevicePtr to, const void* from, std::size_t bytes, cuda::Stream) {
    std::memcpy(at(to), from, bytes);
    return Result::Success;
  };
  api.memcpy_dtoh_async = [](void* to, DevicePtr from, std::size_t bytes, cuda::Stream) {
    std::memcpy(to, at(from), bytes);
    return Result::Success;
  };
  api.memcpy_dtod_async = [](DevicePtr to, DevicePtr from, std::size_t bytes, cuda::Stream) {
    std::memcpy(at(to), at(from), bytes);
    return Result::Success;
  };
  api.memset_d8_async = [](DevicePtr to, unsigned char value, std::size_t bytes, cuda::Stream) {
    std::memset(at(to), value, bytes);
    return Result::Success;
  };
}

}  // namespace

std::shared_ptr<const cuda::DriverApi> make_host_driver() {
  host_device = {};
  auto api = std::make_shared<cuda::DriverApi>();
#define CUBIND_SUCCEED(member, exported, parameters) api->member = succeed;
  CUBIND_DRIVER_FUNCTIONS(CUBIND_SUCCEED)
#undef CUBIND_SUCCEED
  api->device_get_count = [](int* count) {
    *count = 1;
    return Result::Success;
  };
  api->primary_ctx_retain = [](cuda::Context* context, cuda::DeviceOrdinal) {
    *context = reinterpret_cast<cuda::Context>(&host_device);  // NOLINT: a handle
    return Result::Success;
  };
  api->mem_get_info = [](std::size_t* free, std::size_t* total) {
    *free = *total = std::size_t{1} << 30;
    return Result::Success;
  };
  api->func_get_attribute = [](int* value, cuda::FunctionAttribute, cuda::Function) {
    *value = 1024;
    return Result::Success;
  };
  api->module_get_function = get_function;
  api->module_get_global = get_variable;
  api->tensor_map_encode_tiled = [](cuda::TensorMap* map, int, unsigned, void* base, const std::uint64_t*,
                                    const std::uint64_t*, const std::uint32_t*, const std::uint32_t*, int,
                                    int, int, int) {
    map->opaque[0] = reinterpret_cast<std::uintptr_t>(base);
    return Result::Success;
  };
  api->launch_kernel = launch;
  api->profiler_start = [] {
    host_device.profiled = true;
    return Result::Success;
  };
  api->profiler_stop = [] {
    host_device.profiled = false;
    return Result::Success;
  };
  set_memory_functions(*api);
  set_mapping_functions(*api);
  return api;
}

const std::vector<float>& variable(const std::string& name) { return host_device.variables[name]; }

std::array<DevicePtr, 2> last_pointers() { return host_device.last_pointers; }

std::array<DevicePtr, 2> last_mapping_ends() { return host_device.last_mapping_ends; }

float last_scalar() { return host_device.last_scalar; }

const std::map<std::string, int>& launched() { return host_device.launched; }

const std::map<std::string, int>& launched_while_profiled() { return host_device.launched_while_profiled; }

void limit_allocations(std::uint64_t count) { host_device.allocations_left = count; }

DevicePtr last_filled() { return host_device.last_filled; }

std::array<double, 2> last_fill() { return host_device.last_fill; }
int last_grain_bits() { return host_device.last_grain_bits; }

DevicePtr last_hashed() { return host_device.last_hashed; }

}  // namespace cubind::test
