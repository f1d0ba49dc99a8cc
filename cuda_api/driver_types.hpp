// The part of cuda.h that cubind uses, declared by hand so that no CUDA header is needed outside
// tuner/worker, where static_asserts hold these declarations against the real ones. Handles are the driver's
// own incomplete structs.
#pragma once

#include <cstdint>

struct CUctx_st;
struct CUmod_st;
struct CUfunc_st;
struct CUstream_st;
struct CUevent_st;
struct CUgraph_st;
struct CUgraphExec_st;

namespace cubind::cuda {

using DeviceOrdinal = int;
using DevicePtr = unsigned long long;
using Context = CUctx_st*;
using Module = CUmod_st*;
using Function = CUfunc_st*;
using Stream = CUstream_st*;
using Event = CUevent_st*;
using Graph = CUgraph_st*;
using GraphExec = CUgraphExec_st*;

struct Uuid {
  char bytes[16];
};

/// The result of a driver call. Only the values that cubind tells apart have names; any other is possible.
enum class Result : int {
  Success = 0,
  InvalidValue = 1,
  OutOfMemory = 2,
  NotInitialized = 3,
  NoDevice = 100,
  InvalidImage = 200,
  NoBinaryForGpu = 209,
  EccUncorrectable = 214,
  NvlinkUncorrectable = 220,
  UnsupportedPtxVersion = 222,
  NotFound = 500,
  NotReady = 600,
  IllegalAddress = 700,
  LaunchOutOfResources = 701,
  LaunchTimeout = 702,
  ContextIsDestroyed = 709,
  Assert = 710,
  HardwareStackError = 714,
  IllegalInstruction = 715,
  MisalignedAddress = 716,
  InvalidAddressSpace = 717,
  InvalidPc = 718,
  LaunchFailed = 719,
  Unknown = 999,
};

enum class DeviceAttribute : int {
  WarpSize = 10,
  MaxRegistersPerBlock = 12,
  ClockRateKhz = 13,
  MultiprocessorCount = 16,
  MemoryClockRateKhz = 36,
  MemoryBusWidthBits = 37,
  L2CacheBytes = 38,
  ComputeCapabilityMajor = 75,
  ComputeCapabilityMinor = 76,
  MaxSharedPerBlockOptin = 97,
  PciDeviceId = 139,
};

enum class FunctionAttribute : int {
  MaxThreadsPerBlock = 0,
  SharedSizeBytes = 1,
  LocalSizeBytes = 3,
  NumRegs = 4,
  MaxDynamicSharedBytes = 8,
  PreferredSharedCarveout = 9,  // a share of the L1 in percent
  NonPortableClusterSizeAllowed = 14,
};

enum class PointerAttribute : int {
  DevicePointer = 3,
};

enum class CacheConfig : int {
  PreferShared = 1,
};

enum class LaunchAttributeId : int {
  Cooperative = 2,
  ClusterDimension = 4,
  ClusterSchedulingPolicyPreference = 5,
  ProgrammaticStreamSerialization = 6,
  Priority = 8,
};

/// CUtensorMap, aligned as by CUDA 13; CUDA 12 asks for 64 bytes.
struct alignas(128) TensorMap {
  std::uint64_t opaque[16];
};

inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr unsigned kEventDefault = 0;
inline constexpr unsigned kEventDisableTiming = 2;
inline constexpr unsigned kWaitValueGeq = 0;
inline constexpr unsigned kHostAllocDeviceMap = 2;
inline constexpr int kCaptureThreadLocal = 1;
inline constexpr unsigned kClusterSchedulingSpread = 1;

using AllocationHandle = unsigned long long;

/// CUmemLocation: a GPU.
struct MemoryLocation {
  int type = 1;
  DeviceOrdinal device = 0;
};

/// CUmemAllocationProp: pinned memory that is not exported.
struct AllocationProperties {
  int type = 1;
  int exported_as = 0;
  MemoryLocation location;
  void* security = nullptr;
  unsigned char flags[8] = {};
};

/// CUmemAccessDesc: for reading and writing.
struct MemoryAccess {
  MemoryLocation location;
  int flags = 3;
};

/// CUlaunchAttribute. Of its union: the part that the named attributes use.
struct LaunchAttribute {
  alignas(8) LaunchAttributeId id;
  alignas(8) unsigned value[16];
};

/// CUlaunchConfig.
struct LaunchConfig {
  unsigned grid_x, grid_y, grid_z;
  unsigned block_x, block_y, block_z;
  unsigned shared_bytes;
  Stream stream;
  LaunchAttribute* attributes;
  unsigned attribute_count;
};

}  // namespace cubind::cuda
