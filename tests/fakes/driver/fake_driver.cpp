// The functions with an effect. Tests read what was launched by fake_launch().
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string_view>
#include <vector>

#include "cuda_api/driver_types.hpp"

namespace cubind::cuda {

namespace {

struct LaunchRecord {
  std::uint32_t grid[3], block[3], shared_bytes, pad;
  std::uint64_t stream;
  std::uint64_t parameters[24];    // the first 8 bytes of each, as many as fake_parameters() said
  std::uint32_t attributes[4][4];  // of cuLaunchKernelEx: the id, and the first words of the value; 0: none
};

struct SettingRecord {
  std::int32_t attribute, value;
};

struct CopyRecord {
  std::uint64_t to, from, bytes, stream;
};

// What the driver says is no memory that a GPU can access.
constexpr DevicePtr kHostMemory = 0xbad000;

// A stream of this handle captures a graph.
constexpr std::uintptr_t kCapturing = 0xcab;

// Where each variable of a module is, and its size.
constexpr DevicePtr kVariable = 0xc0000;
constexpr std::size_t kVariableBytes = 64 << 10;

std::mutex mutex;
std::vector<CopyRecord> copies;                // guarded; within device memory
std::vector<LaunchRecord> launches;            // guarded
std::map<DevicePtr, std::uint64_t> row_bytes;  // guarded; of the last tensor map of a buffer
std::vector<SettingRecord> settings;           // guarded; of functions
Result launch_result = Result::Success;        // guarded
std::size_t parameter_count = 0;               // guarded
std::size_t modules = 0;                       // guarded
std::atomic<bool> has_context{false};          // the primary one; it is never released
std::atomic<std::size_t> synchronizations{0};  // of contexts
thread_local Context current = nullptr;

template <typename Handle>
Handle handle(std::uintptr_t number) {
  return reinterpret_cast<Handle>(number);  // NOLINT: never dereferenced
}

int attribute(DeviceAttribute which) {
  switch (which) {
    case DeviceAttribute::WarpSize:
      return 32;
    case DeviceAttribute::MaxRegistersPerBlock:
      return 65536;
    case DeviceAttribute::ClockRateKhz:
      return 1980000;
    case DeviceAttribute::MemoryClockRateKhz:
      return 3201000;
    case DeviceAttribute::MultiprocessorCount:
      return 132;
    case DeviceAttribute::L2CacheBytes:
      return 62914560;
    case DeviceAttribute::ComputeCapabilityMajor:
      return 9;
    case DeviceAttribute::MaxSharedPerBlockOptin:
      return 232448;
    case DeviceAttribute::PciDeviceId:
      return 590680286;
    case DeviceAttribute::MemoryBusWidthBits:
      return 6016;
    default:
      return 0;
  }
}

LaunchConfig config_of(unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                       unsigned block_z, unsigned shared_bytes, Stream stream) {
  return {grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream, nullptr, 0};
}

Result record(const LaunchConfig& config, void** parameters) {
  const std::lock_guard lock(mutex);
  if (parameter_count == 0 || launch_result != Result::Success) {
    return launch_result;
  }
  LaunchRecord launch{{config.grid_x, config.grid_y, config.grid_z},
                      {config.block_x, config.block_y, config.block_z},
                      config.shared_bytes,
                      0,
                      reinterpret_cast<std::uintptr_t>(config.stream),
                      {},
                      {}};
  for (std::size_t i = 0; i < parameter_count && i < std::size(launch.parameters); ++i) {
    std::memcpy(&launch.parameters[i], parameters[i], 8);
  }
  for (unsigned i = 0; i < config.attribute_count && i < std::size(launch.attributes); ++i) {
    launch.attributes[i][0] = static_cast<std::uint32_t>(config.attributes[i].id);
    std::memcpy(&launch.attributes[i][1], config.attributes[i].value, 3 * sizeof(std::uint32_t));
  }
  launches.push_back(launch);
  return Result::Success;
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the driver's names
extern "C" {

std::size_t fake_launch_count() {
  const std::lock_guard lock(mutex);
  return launches.size();
}

/// Modules loaded so far.
std::size_t fake_module_count() {
  const std::lock_guard lock(mutex);
  return modules;
}

/// Synchronizations of a context so far.
std::size_t fake_synchronization_count() { return synchronizations; }

/// From one row to the next in the last tensor map that was encoded of the buffer; 0: none was.
std::uint64_t fake_row_bytes(DevicePtr buffer) {
  const std::lock_guard lock(mutex);
  return row_bytes[buffer];
}

/// 0 for an index out of range.
int fake_launch(std::size_t index, LaunchRecord* to) {
  const std::lock_guard lock(mutex);
  if (index >= launches.size()) {
    return 0;
  }
  *to = launches[index];
  return 1;
}

/// 0 for an index out of range.
int fake_copy(std::size_t index, CopyRecord* to) {
  const std::lock_guard lock(mutex);
  if (index >= copies.size()) {
    return 0;
  }
  *to = copies[index];
  return 1;
}

/// Of attributes of functions. 0 for an index out of range.
int fake_setting(std::size_t index, SettingRecord* to) {
  const std::lock_guard lock(mutex);
  if (index >= settings.size()) {
    return 0;
  }
  *to = settings[index];
  return 1;
}

/// Launches return it until fake_parameters() is called.
void fake_launch_result(int result) {
  const std::lock_guard lock(mutex);
  launch_result = static_cast<Result>(result);
}

/// Of the launches from now on: a driver does not know how many parameters a kernel has. With 0, launches are
/// not recorded.
void fake_parameters(std::size_t count) {
  const std::lock_guard lock(mutex);
  parameter_count = count;
  launch_result = Result::Success;
  settings.clear();
  launches.clear();
  copies.clear();
}

Result cuDriverGetVersion(int* version) {
  *version = 13000;
  return Result::Success;
}
Result cuDeviceGetCount(int* count) {
  *count = std::getenv("FAKE_DRIVER_WITHOUT_GPU") == nullptr ? 1 : 0;
  return Result::Success;
}
Result cuDeviceGet(DeviceOrdinal* device, int) {
  *device = 0;
  return Result::Success;
}
Result cuDeviceGetName(char* name, int size, DeviceOrdinal) {
  std::strncpy(name, "NVIDIA H200", static_cast<std::size_t>(size));
  return Result::Success;
}
Result cuDeviceGetUuid_v2(Uuid* uuid, DeviceOrdinal) {
  *uuid = Uuid{};
  return Result::Success;
}
Result cuDeviceGetPCIBusId(char* id, int size, DeviceOrdinal) {
  std::strncpy(id, "0000:00:00.0", static_cast<std::size_t>(size));
  return Result::Success;
}
Result cuDeviceGetAttribute(int* value, DeviceAttribute which, DeviceOrdinal) {
  *value = attribute(which);
  return Result::Success;
}
Result cuDeviceTotalMem_v2(std::size_t* bytes, DeviceOrdinal) {
  *bytes = 150109880320;
  return Result::Success;
}
Result cuDevicePrimaryCtxRetain(Context* context, DeviceOrdinal) {
  *context = handle<Context>(1);
  has_context = true;
  return Result::Success;
}
Result cuDevicePrimaryCtxGetState(DeviceOrdinal, unsigned*, int* active) {
  *active = has_context ? 1 : 0;
  return Result::Success;
}
Result cuCtxSynchronize() {
  ++synchronizations;
  return Result::Success;
}
Result cuCtxGetCurrent(Context* context) {
  *context = current;
  return Result::Success;
}
Result cuCtxSetCurrent(Context context) {
  current = context;
  return Result::Success;
}
Result cuCtxGetDevice(DeviceOrdinal* device) {
  *device = 0;
  return Result::Success;
}
// A cubin, or PTX.
Result cuModuleLoadData(Module* module, const void* image) {
  const auto* text = static_cast<const char*>(image);
  if (!std::string_view(text, 4).starts_with("\x7f"
                                             "ELF") &&
      std::strstr(text, ".version") == nullptr) {
    return Result::InvalidImage;
  }
  const std::lock_guard lock(mutex);
  *module = handle<Module>(++modules);
  return Result::Success;
}
Result cuModuleGetFunction(Function* function, Module, const char*) {
  *function = handle<Function>(1);
  return Result::Success;
}
Result cuModuleGetGlobal_v2(DevicePtr* address, std::size_t* bytes, Module, const char*) {
  *address = kVariable;
  *bytes = kVariableBytes;
  return Result::Success;
}
Result cuMemcpyDtoDAsync_v2(DevicePtr to, DevicePtr from, std::size_t bytes, Stream stream) {
  const std::lock_guard lock(mutex);
  if (parameter_count > 0) {
    copies.push_back({to, from, bytes, reinterpret_cast<std::uintptr_t>(stream)});
  }
  return Result::Success;
}
Result cuFuncGetAttribute(int* value, FunctionAttribute, Function) {
  *value = 48 << 10;
  return Result::Success;
}
Result cuFuncSetAttribute(Function, FunctionAttribute attribute, int value) {
  const std::lock_guard lock(mutex);
  settings.push_back({static_cast<std::int32_t>(attribute), value});
  return Result::Success;
}
Result cuPointerGetAttribute(void* value, PointerAttribute, DevicePtr pointer) {
  if (pointer == kHostMemory) {
    return Result::InvalidValue;
  }
  std::memcpy(value, &pointer, sizeof pointer);
  return Result::Success;
}
// Its first 8 bytes are the address of the buffer.
Result cuTensorMapEncodeTiled(TensorMap* map, int, unsigned, void* base, const std::uint64_t*,
                              const std::uint64_t* strides, const std::uint32_t*, const std::uint32_t*, int,
                              int, int, int) {
  const std::lock_guard lock(mutex);
  *map = {{reinterpret_cast<std::uintptr_t>(base)}};
  row_bytes[map->opaque[0]] = strides[0];
  return Result::Success;
}
Result cuStreamIsCapturing(Stream stream, int* status) {
  *status = stream == handle<Stream>(kCapturing) ? 1 : 0;
  return Result::Success;
}
Result cuGetErrorName(Result, const char** name) {
  *name = "CUDA_ERROR_FAKE";
  return Result::Success;
}
Result cuGetErrorString(Result, const char** text) {
  *text = "the fake driver refuses";
  return Result::Success;
}
Result cuLaunchKernel(Function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                      unsigned block_y, unsigned block_z, unsigned shared_bytes, Stream stream,
                      void** parameters, void**) {
  return record(config_of(grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream),
                parameters);
}
Result cuLaunchKernelEx(const LaunchConfig* config, Function, void** parameters, void**) {
  return record(*config, parameters);
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)

}  // namespace cubind::cuda
