// Holds the declarations of cuda_api against the real headers: a drift is a compile error here.
#include <cuda.h>
#include <cupti.h>
#include <nvml.h>

#include <cstddef>
#include <type_traits>

#include "cuda_api/driver_api.hpp"
#include "cuda_api/nvml_api.hpp"
#include "plan/tensor_map.hpp"

// Of cudaProfiler.h, which NVIDIA's wheels lack.
extern "C" CUresult cuProfilerStart();
extern "C" CUresult cuProfilerStop();

namespace cubind::worker {
namespace {

// Two parameters are passed alike: identical, or pointers to types of one size, or an enum and its
// hand-declared twin, which is an enum or integer of the same size.
template <typename Ours, typename Theirs>
constexpr bool passed_alike() {
  using A = std::remove_cv_t<Ours>;
  using B = std::remove_cv_t<Theirs>;
  if constexpr (std::is_same_v<A, B>) {
    return true;
  } else if constexpr (std::is_pointer_v<A> && std::is_pointer_v<B>) {
    using PointeeA = std::remove_cv_t<std::remove_pointer_t<A>>;
    using PointeeB = std::remove_cv_t<std::remove_pointer_t<B>>;
    if constexpr (std::is_same_v<PointeeA, PointeeB>) {
      return true;
    } else {
      return sizeof(PointeeA) == sizeof(PointeeB) && alignof(PointeeA) >= alignof(PointeeB);
    }
  } else {
    constexpr bool scalars =
        (std::is_enum_v<A> || std::is_integral_v<A>)&&(std::is_enum_v<B> || std::is_integral_v<B>);
    return scalars && sizeof(A) == sizeof(B);
  }
}

template <typename Ours, typename Theirs>
struct SameCall : std::false_type {};

template <typename R1, typename... P1, typename R2, typename... P2>
  requires(sizeof...(P1) == sizeof...(P2))
struct SameCall<R1 (*)(P1...), R2(P2...)>
    : std::bool_constant<sizeof(R1) == sizeof(R2) && (passed_alike<P1, P2>() && ...)> {};

#define CUBIND_CHECK_DRIVER(member, exported, parameters) \
  static_assert(SameCall<decltype(cuda::DriverApi::member), decltype(exported)>::value, #exported);
CUBIND_DRIVER_FUNCTIONS(CUBIND_CHECK_DRIVER)

#define CUBIND_CHECK_NVML(member, exported, parameters) \
  static_assert(SameCall<decltype(cuda::NvmlApi::member), decltype(exported)>::value, #exported);
CUBIND_NVML_FUNCTIONS(CUBIND_CHECK_NVML)

template <typename A, typename B>
constexpr bool same_value(A ours, B theirs) {
  return static_cast<long long>(ours) == static_cast<long long>(theirs);
}

static_assert(std::is_same_v<cuda::Context, CUcontext> && std::is_same_v<cuda::DevicePtr, CUdeviceptr>);
static_assert(same_value(cuda::Result::OutOfMemory, CUDA_ERROR_OUT_OF_MEMORY));
static_assert(same_value(cuda::Result::NoDevice, CUDA_ERROR_NO_DEVICE));
static_assert(same_value(cuda::Result::InvalidImage, CUDA_ERROR_INVALID_IMAGE));
static_assert(same_value(cuda::Result::NoBinaryForGpu, CUDA_ERROR_NO_BINARY_FOR_GPU));
static_assert(same_value(cuda::Result::EccUncorrectable, CUDA_ERROR_ECC_UNCORRECTABLE));
static_assert(same_value(cuda::Result::UnsupportedPtxVersion, CUDA_ERROR_UNSUPPORTED_PTX_VERSION));
static_assert(same_value(cuda::Result::NotFound, CUDA_ERROR_NOT_FOUND));
static_assert(same_value(cuda::Result::NotReady, CUDA_ERROR_NOT_READY));
static_assert(same_value(cuda::Result::IllegalAddress, CUDA_ERROR_ILLEGAL_ADDRESS));
static_assert(same_value(cuda::Result::LaunchOutOfResources, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES));
static_assert(same_value(cuda::Result::LaunchTimeout, CUDA_ERROR_LAUNCH_TIMEOUT));
static_assert(same_value(cuda::Result::Assert, CUDA_ERROR_ASSERT));
static_assert(same_value(cuda::Result::HardwareStackError, CUDA_ERROR_HARDWARE_STACK_ERROR));
static_assert(same_value(cuda::Result::IllegalInstruction, CUDA_ERROR_ILLEGAL_INSTRUCTION));
static_assert(same_value(cuda::Result::MisalignedAddress, CUDA_ERROR_MISALIGNED_ADDRESS));
static_assert(same_value(cuda::Result::InvalidAddressSpace, CUDA_ERROR_INVALID_ADDRESS_SPACE));
static_assert(same_value(cuda::Result::InvalidPc, CUDA_ERROR_INVALID_PC));
static_assert(same_value(cuda::Result::LaunchFailed, CUDA_ERROR_LAUNCH_FAILED));

static_assert(same_value(cuda::DeviceAttribute::ClockRateKhz, CU_DEVICE_ATTRIBUTE_CLOCK_RATE));
static_assert(same_value(cuda::DeviceAttribute::WarpSize, CU_DEVICE_ATTRIBUTE_WARP_SIZE));
static_assert(same_value(cuda::DeviceAttribute::MaxRegistersPerBlock,
                         CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK));
static_assert(same_value(cuda::DeviceAttribute::MultiprocessorCount,
                         CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
static_assert(same_value(cuda::DeviceAttribute::MemoryClockRateKhz, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE));
static_assert(same_value(cuda::DeviceAttribute::MemoryBusWidthBits,
                         CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH));
static_assert(same_value(cuda::DeviceAttribute::L2CacheBytes, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE));
static_assert(same_value(cuda::DeviceAttribute::ComputeCapabilityMajor,
                         CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR));
static_assert(same_value(cuda::DeviceAttribute::ComputeCapabilityMinor,
                         CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
static_assert(same_value(cuda::DeviceAttribute::MaxSharedPerBlockOptin,
                         CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN));
static_assert(same_value(cuda::DeviceAttribute::PciDeviceId, CU_DEVICE_ATTRIBUTE_GPU_PCI_DEVICE_ID));

static_assert(same_value(cuda::FunctionAttribute::MaxThreadsPerBlock,
                         CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK));
static_assert(same_value(cuda::FunctionAttribute::SharedSizeBytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES));
static_assert(same_value(cuda::FunctionAttribute::LocalSizeBytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES));
static_assert(same_value(cuda::FunctionAttribute::NumRegs, CU_FUNC_ATTRIBUTE_NUM_REGS));
static_assert(same_value(cuda::FunctionAttribute::MaxDynamicSharedBytes,
                         CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES));
static_assert(same_value(cuda::FunctionAttribute::PreferredSharedCarveout,
                         CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT));
static_assert(same_value(cuda::FunctionAttribute::NonPortableClusterSizeAllowed,
                         CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED));

static_assert(same_value(cuda::PointerAttribute::DevicePointer, CU_POINTER_ATTRIBUTE_DEVICE_POINTER));
static_assert(same_value(cuda::CacheConfig::PreferShared, CU_FUNC_CACHE_PREFER_SHARED));
static_assert(same_value(cuda::LaunchAttributeId::Cooperative, CU_LAUNCH_ATTRIBUTE_COOPERATIVE));
static_assert(same_value(cuda::LaunchAttributeId::ClusterDimension, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION));
static_assert(same_value(cuda::LaunchAttributeId::ClusterSchedulingPolicyPreference,
                         CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE));
static_assert(same_value(cuda::LaunchAttributeId::Priority, CU_LAUNCH_ATTRIBUTE_PRIORITY));
static_assert(same_value(cuda::LaunchAttributeId::ProgrammaticStreamSerialization,
                         CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION));
static_assert(same_value(cuda::kClusterSchedulingSpread, CU_CLUSTER_SCHEDULING_POLICY_SPREAD));

static_assert(same_value(cuda::kStreamNonBlocking, CU_STREAM_NON_BLOCKING));
static_assert(same_value(cuda::kEventDisableTiming, CU_EVENT_DISABLE_TIMING));
static_assert(same_value(cuda::kWaitValueGeq, CU_STREAM_WAIT_VALUE_GEQ));
static_assert(same_value(cuda::kHostAllocDeviceMap, CU_MEMHOSTALLOC_DEVICEMAP));
static_assert(same_value(cuda::kCaptureThreadLocal, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));

static_assert(same_value(TensorMapType::U8, CU_TENSOR_MAP_DATA_TYPE_UINT8));
static_assert(same_value(TensorMapType::U16, CU_TENSOR_MAP_DATA_TYPE_UINT16));
static_assert(same_value(TensorMapType::U32, CU_TENSOR_MAP_DATA_TYPE_UINT32));
static_assert(same_value(TensorMapType::I32, CU_TENSOR_MAP_DATA_TYPE_INT32));
static_assert(same_value(TensorMapType::U64, CU_TENSOR_MAP_DATA_TYPE_UINT64));
static_assert(same_value(TensorMapType::I64, CU_TENSOR_MAP_DATA_TYPE_INT64));
static_assert(same_value(TensorMapType::F16, CU_TENSOR_MAP_DATA_TYPE_FLOAT16));
static_assert(same_value(TensorMapType::F32, CU_TENSOR_MAP_DATA_TYPE_FLOAT32));
static_assert(same_value(TensorMapType::F64, CU_TENSOR_MAP_DATA_TYPE_FLOAT64));
static_assert(same_value(TensorMapType::Bf16, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16));
static_assert(same_value(TensorMapType::F32Ftz, CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ));
static_assert(same_value(TensorMapType::Tf32, CU_TENSOR_MAP_DATA_TYPE_TFLOAT32));
static_assert(same_value(TensorMapType::Tf32Ftz, CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ));
// The numbers that launch/tensor_map.cpp computes.
static_assert(CU_TENSOR_MAP_INTERLEAVE_NONE == 0 && CU_TENSOR_MAP_INTERLEAVE_16B == 1 &&
              CU_TENSOR_MAP_INTERLEAVE_32B == 2);
static_assert(CU_TENSOR_MAP_SWIZZLE_NONE == 0 && CU_TENSOR_MAP_SWIZZLE_32B == 1 &&
              CU_TENSOR_MAP_SWIZZLE_64B == 2 && CU_TENSOR_MAP_SWIZZLE_128B == 3);
static_assert(CU_TENSOR_MAP_L2_PROMOTION_NONE == 0 && CU_TENSOR_MAP_L2_PROMOTION_L2_64B == 1 &&
              CU_TENSOR_MAP_L2_PROMOTION_L2_128B == 2 && CU_TENSOR_MAP_L2_PROMOTION_L2_256B == 3);
static_assert(CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE == 0 &&
              CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA == 1);
static_assert(CU_STREAM_CAPTURE_STATUS_ACTIVE == 1);

static_assert(sizeof(cuda::MemoryLocation) == sizeof(CUmemLocation));
static_assert(offsetof(cuda::MemoryLocation, device) == offsetof(CUmemLocation, id));
static_assert(sizeof(cuda::AllocationProperties) == sizeof(CUmemAllocationProp));
static_assert(offsetof(cuda::AllocationProperties, location) == offsetof(CUmemAllocationProp, location));
static_assert(sizeof(cuda::MemoryAccess) == sizeof(CUmemAccessDesc));
static_assert(same_value(cuda::MemoryLocation{}.type, CU_MEM_LOCATION_TYPE_DEVICE));
static_assert(same_value(cuda::AllocationProperties{}.type, CU_MEM_ALLOCATION_TYPE_PINNED));
static_assert(same_value(cuda::MemoryAccess{}.flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));

static_assert(sizeof(cuda::LaunchAttribute) == sizeof(CUlaunchAttribute));
static_assert(offsetof(cuda::LaunchAttribute, value) == offsetof(CUlaunchAttribute, value));
static_assert(sizeof(cuda::LaunchConfig) == sizeof(CUlaunchConfig));
static_assert(offsetof(cuda::LaunchConfig, shared_bytes) == offsetof(CUlaunchConfig, sharedMemBytes));
static_assert(offsetof(cuda::LaunchConfig, stream) == offsetof(CUlaunchConfig, hStream));
static_assert(offsetof(cuda::LaunchConfig, attributes) == offsetof(CUlaunchConfig, attrs));
static_assert(offsetof(cuda::LaunchConfig, attribute_count) == offsetof(CUlaunchConfig, numAttrs));

static_assert(std::is_same_v<cuda::NvmlDevice, nvmlDevice_t>);
static_assert(same_value(cuda::NvmlResult::NotSupported, NVML_ERROR_NOT_SUPPORTED));
static_assert(same_value(cuda::NvmlResult::NoPermission, NVML_ERROR_NO_PERMISSION));
static_assert(same_value(cuda::NvmlResult::NotFound, NVML_ERROR_NOT_FOUND));
static_assert(same_value(cuda::NvmlResult::InsufficientSize, NVML_ERROR_INSUFFICIENT_SIZE));
static_assert(same_value(cuda::NvmlClock::Sm, NVML_CLOCK_SM) &&
              same_value(cuda::NvmlClock::Memory, NVML_CLOCK_MEM));
static_assert(sizeof(cuda::NvmlMemory) == sizeof(nvmlMemory_t) &&
              sizeof(cuda::NvmlMemoryV2) == sizeof(nvmlMemory_v2_t));
static_assert(offsetof(cuda::NvmlMemoryV2, used) == offsetof(nvmlMemory_v2_t, used));
static_assert(cuda::kNvmlMemoryV2Version == nvmlMemory_v2);
static_assert(sizeof(cuda::NvmlProcess) == sizeof(nvmlProcessInfo_t));
static_assert(offsetof(cuda::NvmlProcess, used_memory) == offsetof(nvmlProcessInfo_t, usedGpuMemory));
static_assert(sizeof(cuda::NvmlProcessSample) == sizeof(nvmlProcessUtilizationSample_t));
static_assert(offsetof(cuda::NvmlProcessSample, time_stamp) ==
              offsetof(nvmlProcessUtilizationSample_t, timeStamp));
static_assert(sizeof(cuda::NvmlPci) == sizeof(nvmlPciInfo_t));
static_assert(offsetof(cuda::NvmlPci, pci_device_id) == offsetof(nvmlPciInfo_t, pciDeviceId));
static_assert(cuda::kThrottleGpuIdle == nvmlClocksEventReasonGpuIdle);
static_assert(cuda::kThrottleSoftwarePowerCap == nvmlClocksEventReasonSwPowerCap);
static_assert(cuda::kThrottleHardwareSlowdown == nvmlClocksThrottleReasonHwSlowdown);
static_assert(cuda::kThrottleSoftwareThermal == nvmlClocksEventReasonSwThermalSlowdown);
static_assert(cuda::kThrottleHardwareThermal == nvmlClocksThrottleReasonHwThermalSlowdown);
static_assert(cuda::kThrottleHardwarePowerBrake == nvmlClocksThrottleReasonHwPowerBrakeSlowdown);

}  // namespace
}  // namespace cubind::worker
