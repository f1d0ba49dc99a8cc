// The driver's functions, one line each: X(member of DriverApi, exported symbol, parameters). All return a
// Result. Every symbol is exported by driver branch 525 (CUDA 12.0) and later; versioned names are used where
// cuda.h maps to one, so that the declaration and the symbol cannot drift apart.
#pragma once

// clang-format off
#define CUBIND_DRIVER_FUNCTIONS(X) \
    X(init, cuInit, (unsigned)) \
    X(driver_get_version, cuDriverGetVersion, (int*)) \
    X(get_error_name, cuGetErrorName, (Result, const char**)) \
    X(get_error_string, cuGetErrorString, (Result, const char**)) \
    X(device_get_count, cuDeviceGetCount, (int*)) \
    X(device_get, cuDeviceGet, (DeviceOrdinal*, int)) \
    X(device_get_name, cuDeviceGetName, (char*, int, DeviceOrdinal)) \
    X(device_get_uuid, cuDeviceGetUuid_v2, (Uuid*, DeviceOrdinal)) \
    X(device_get_pci_bus_id, cuDeviceGetPCIBusId, (char*, int, DeviceOrdinal)) \
    X(device_get_attribute, cuDeviceGetAttribute, (int*, DeviceAttribute, DeviceOrdinal)) \
    X(device_total_mem, cuDeviceTotalMem_v2, (std::size_t*, DeviceOrdinal)) \
    X(primary_ctx_retain, cuDevicePrimaryCtxRetain, (Context*, DeviceOrdinal)) \
    X(primary_ctx_get_state, cuDevicePrimaryCtxGetState, (DeviceOrdinal, unsigned*, int*)) \
    X(primary_ctx_release, cuDevicePrimaryCtxRelease_v2, (DeviceOrdinal)) \
    X(ctx_get_current, cuCtxGetCurrent, (Context*)) \
    X(ctx_set_current, cuCtxSetCurrent, (Context)) \
    X(ctx_get_device, cuCtxGetDevice, (DeviceOrdinal*)) \
    X(ctx_synchronize, cuCtxSynchronize, ()) \
    X(module_load_data, cuModuleLoadData, (Module*, const void*)) \
    X(module_unload, cuModuleUnload, (Module)) \
    X(module_get_function, cuModuleGetFunction, (Function*, Module, const char*)) \
    X(module_get_global, cuModuleGetGlobal_v2, (DevicePtr*, std::size_t*, Module, const char*)) \
    X(func_get_attribute, cuFuncGetAttribute, (int*, FunctionAttribute, Function)) \
    X(func_set_attribute, cuFuncSetAttribute, (Function, FunctionAttribute, int)) \
    X(func_set_cache_config, cuFuncSetCacheConfig, (Function, CacheConfig)) \
    X(occupancy_max_active_blocks, cuOccupancyMaxActiveBlocksPerMultiprocessor, (int*, Function, int, std::size_t)) \
    X(launch_kernel, cuLaunchKernel, (Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Stream, void**, void**)) \
    X(launch_kernel_ex, cuLaunchKernelEx, (const LaunchConfig*, Function, void**, void**)) \
    X(tensor_map_encode_tiled, cuTensorMapEncodeTiled, (TensorMap*, int, unsigned, void*, const std::uint64_t*, const std::uint64_t*, const std::uint32_t*, const std::uint32_t*, int, int, int, int)) \
    X(mem_get_info, cuMemGetInfo_v2, (std::size_t*, std::size_t*)) \
    X(mem_alloc, cuMemAlloc_v2, (DevicePtr*, std::size_t)) \
    X(mem_free, cuMemFree_v2, (DevicePtr)) \
    X(mem_get_allocation_granularity, cuMemGetAllocationGranularity, (std::size_t*, const AllocationProperties*, int)) \
    X(mem_address_reserve, cuMemAddressReserve, (DevicePtr*, std::size_t, std::size_t, DevicePtr, unsigned long long)) \
    X(mem_address_free, cuMemAddressFree, (DevicePtr, std::size_t)) \
    X(mem_create, cuMemCreate, (AllocationHandle*, std::size_t, const AllocationProperties*, unsigned long long)) \
    X(mem_release, cuMemRelease, (AllocationHandle)) \
    X(mem_map, cuMemMap, (DevicePtr, std::size_t, std::size_t, AllocationHandle, unsigned long long)) \
    X(mem_unmap, cuMemUnmap, (DevicePtr, std::size_t)) \
    X(mem_set_access, cuMemSetAccess, (DevicePtr, std::size_t, const MemoryAccess*, std::size_t)) \
    X(mem_host_alloc, cuMemHostAlloc, (void**, std::size_t, unsigned)) \
    X(mem_free_host, cuMemFreeHost, (void*)) \
    X(mem_host_get_device_pointer, cuMemHostGetDevicePointer_v2, (DevicePtr*, void*, unsigned)) \
    X(pointer_get_attribute, cuPointerGetAttribute, (void*, PointerAttribute, DevicePtr)) \
    X(memcpy_htod, cuMemcpyHtoD_v2, (DevicePtr, const void*, std::size_t)) \
    X(memcpy_dtoh, cuMemcpyDtoH_v2, (void*, DevicePtr, std::size_t)) \
    X(memcpy_htod_async, cuMemcpyHtoDAsync_v2, (DevicePtr, const void*, std::size_t, Stream)) \
    X(memcpy_dtoh_async, cuMemcpyDtoHAsync_v2, (void*, DevicePtr, std::size_t, Stream)) \
    X(memcpy_dtod_async, cuMemcpyDtoDAsync_v2, (DevicePtr, DevicePtr, std::size_t, Stream)) \
    X(memset_d8_async, cuMemsetD8Async, (DevicePtr, unsigned char, std::size_t, Stream)) \
    X(memset_d32_async, cuMemsetD32Async, (DevicePtr, unsigned, std::size_t, Stream)) \
    X(stream_create, cuStreamCreate, (Stream*, unsigned)) \
    X(stream_destroy, cuStreamDestroy_v2, (Stream)) \
    X(stream_synchronize, cuStreamSynchronize, (Stream)) \
    X(stream_wait_value32, cuStreamWaitValue32_v2, (Stream, DevicePtr, std::uint32_t, unsigned)) \
    X(stream_is_capturing, cuStreamIsCapturing, (Stream, int*)) \
    X(stream_begin_capture, cuStreamBeginCapture_v2, (Stream, int)) \
    X(stream_end_capture, cuStreamEndCapture, (Stream, Graph*)) \
    X(graph_instantiate, cuGraphInstantiateWithFlags, (GraphExec*, Graph, unsigned long long)) \
    X(graph_launch, cuGraphLaunch, (GraphExec, Stream)) \
    X(graph_destroy, cuGraphDestroy, (Graph)) \
    X(graph_exec_destroy, cuGraphExecDestroy, (GraphExec)) \
    X(event_create, cuEventCreate, (Event*, unsigned)) \
    X(event_destroy, cuEventDestroy_v2, (Event)) \
    X(event_record, cuEventRecord, (Event, Stream)) \
    X(event_elapsed_time, cuEventElapsedTime, (float*, Event, Event)) \
    X(profiler_start, cuProfilerStart, ()) \
    X(profiler_stop, cuProfilerStop, ())
// clang-format on
