// A driver whose device memory is this process's, and which knows what the worker's own kernels do.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cuda_api/driver_api.hpp"

namespace cubind::test {

/// Of mapped memory.
inline constexpr std::size_t kGranularity = 4096;

/// Everything is done at once. Kernels by other names do nothing. One at a time in a process.
std::shared_ptr<const cuda::DriverApi> make_host_driver();

/// The content of a variable, zeros at first: each has three floats.
const std::vector<float>& variable(const std::string& name);
/// The pointers of the last launch of a kernel by the name two_pointers. A tensor map counts by its first 8
/// bytes.
std::array<cuda::DevicePtr, 2> last_pointers();
/// The argument of the last launch of a kernel by the name one_scalar.
float last_scalar();
/// How often each kernel was launched since the driver was made.
const std::map<std::string, int>& launched();
/// The same, of those between profiler_start and profiler_stop.
const std::map<std::string, int>& launched_while_profiled();
/// Has memory for so many more allocations, whatever is freed.
void limit_allocations(std::uint64_t count);
/// The buffer that was filled last.
cuda::DevicePtr last_filled();
/// The parameters of its fill.
std::array<double, 2> last_fill();
/// Of the elements that it changed; -1: all of them.
int last_grain_bits();
/// The ends of the last mapping and of the addresses that were reserved for it.
std::array<cuda::DevicePtr, 2> last_mapping_ends();
/// The buffer that was hashed last.
cuda::DevicePtr last_hashed();

}  // namespace cubind::test
