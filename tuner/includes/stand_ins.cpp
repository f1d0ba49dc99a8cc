#include "tuner/includes/stand_ins.hpp"

#include <array>
#include <map>
#include <memory>
#include <string_view>

#include "tuner/includes/include_scan.hpp"
#include "tuner/includes/stand_ins.texts.hpp"

namespace cubind {
namespace {

// The compiler has predefined what device code uses of these.
constexpr auto kPredefined = std::to_array<std::string_view>({
    "builtin_types.h",
    "channel_descriptor.h",
    "common_functions.h",
    "cuda_device_runtime_api.h",
    "cuda_runtime_api.h",
    "cuda_surface_types.h",
    "cuda_texture_types.h",
    "device_atomic_functions.h",
    "device_double_functions.h",
    "device_functions.h",
    "device_launch_parameters.h",
    "device_types.h",
    "driver_types.h",
    "host_config.h",
    "host_defines.h",
    "initializer_list",
    "malloc.h",
    "math_functions.h",
    "memory.h",
    "new",
    "sm_20_atomic_functions.h",
    "sm_20_intrinsics.h",
    "sm_30_intrinsics.h",
    "sm_32_atomic_functions.h",
    "sm_32_intrinsics.h",
    "sm_35_atomic_functions.h",
    "sm_35_intrinsics.h",
    "sm_60_atomic_functions.h",
    "sm_61_intrinsics.h",
    "stdbool.h",
    "surface_functions.h",
    "surface_indirect_functions.h",
    "surface_types.h",
    "texture_fetch_functions.h",
    "texture_indirect_functions.h",
    "texture_types.h",
    "time.h",
    "vector_functions.h",
    "vector_types.h",
});

// Host code alone uses them; those of CCCL do not compile under NVRTC.
constexpr auto kHostOnly = std::to_array<std::string_view>({
    "any",
    "atomic",
    "bitset",
    "cctype",
    "cerrno",
    "chrono",
    "complex",
    "complex.h",
    "condition_variable",
    "csignal",
    "cstdarg",
    "ctype.h",
    "cub/device/device_adjacent_difference.cuh",
    "cub/device/device_copy.cuh",
    "cub/device/device_for.cuh",
    "cub/device/device_histogram.cuh",
    "cub/device/device_memcpy.cuh",
    "cub/device/device_merge.cuh",
    "cub/device/device_merge_sort.cuh",
    "cub/device/device_partition.cuh",
    "cub/device/device_radix_sort.cuh",
    "cub/device/device_reduce.cuh",
    "cub/device/device_run_length_encode.cuh",
    "cub/device/device_scan.cuh",
    "cub/device/device_segmented_radix_sort.cuh",
    "cub/device/device_segmented_reduce.cuh",
    "cub/device/device_segmented_sort.cuh",
    "cub/device/device_select.cuh",
    "cub/device/device_transform.cuh",
    "cub/util_allocator.cuh",
    "cublas.h",
    "cudaProfiler.h",
    "cudaTypedefs.h",
    "cuda_profiler_api.h",
    "cudnn.h",
    "cufft.h",
    "curand.h",
    "cusolverDn.h",
    "cusparse.h",
    "deque",
    "driver_functions.h",
    "errno.h",
    "exception",
    "filesystem",
    "fstream",
    "future",
    "getopt.h",
    "helper_cuda.h",
    "helper_functions.h",
    "helper_string.h",
    "helper_timer.h",
    "iomanip",
    "ios",
    "iosfwd",
    "iostream",
    "istream",
    "iterator",
    "list",
    "locale",
    "map",
    "memory",
    "mpi.h",
    "mutex",
    "nccl.h",
    "nvToolsExt.h",
    "nvml.h",
    "nvrtc.h",
    "nvtx3/nvToolsExt.h",
    "omp.h",
    "optional",
    "ostream",
    "queue",
    "random",
    "regex",
    "set",
    "shared_mutex",
    "signal.h",
    "sstream",
    "stack",
    "stdarg.h",
    "stdexcept",
    "streambuf",
    "string",
    "string_view",
    "strings.h",
    "sys/mman.h",
    "sys/stat.h",
    "sys/time.h",
    "system_error",
    "thread",
    "thrust/adjacent_difference.h",
    "thrust/binary_search.h",
    "thrust/copy.h",
    "thrust/count.h",
    "thrust/device_allocator.h",
    "thrust/device_free.h",
    "thrust/device_malloc.h",
    "thrust/device_ptr.h",
    "thrust/device_vector.h",
    "thrust/equal.h",
    "thrust/execution_policy.h",
    "thrust/extrema.h",
    "thrust/fill.h",
    "thrust/for_each.h",
    "thrust/gather.h",
    "thrust/generate.h",
    "thrust/host_vector.h",
    "thrust/inner_product.h",
    "thrust/logical.h",
    "thrust/memory.h",
    "thrust/merge.h",
    "thrust/partition.h",
    "thrust/random.h",
    "thrust/reduce.h",
    "thrust/remove.h",
    "thrust/replace.h",
    "thrust/reverse.h",
    "thrust/scan.h",
    "thrust/scatter.h",
    "thrust/sequence.h",
    "thrust/set_operations.h",
    "thrust/sort.h",
    "thrust/system/cuda/execution_policy.h",
    "thrust/transform.h",
    "thrust/transform_reduce.h",
    "thrust/transform_scan.h",
    "thrust/unique.h",
    "typeindex",
    "typeinfo",
    "unistd.h",
    "unordered_map",
    "unordered_set",
    "valarray",
    "variant",
    "vector",
});

using Headers = std::map<std::string, ToolkitHeader, std::less<>>;

void add(Headers& headers, std::string_view name, std::string_view text) {
  ToolkitHeader header;
  header.file = std::make_shared<const CompilerFile>(CompilerFile::of(std::string(name), std::string(text)));
  for (const IncludeReference& reference : scan_includes(text).references) {
    header.includes.push_back(reference.name);
  }
  headers.emplace(name, std::move(header));
}

const Headers& stand_ins() {
  static const Headers all = [] {
    Headers headers;
    for (const auto& [name, text] : kStandInTexts) {
      add(headers, name, text);
    }
    for (const std::string_view name : kPredefined) {
      add(headers, name, "// The compiler has predefined what device code uses of this header.\n");
    }
    for (const std::string_view name : kHostOnly) {
      add(headers, name, "// Only host code uses this header.\n");
    }
    return headers;
  }();
  return all;
}

}  // namespace

const ToolkitHeader* find_stand_in(const std::string& name) {
  const auto found = stand_ins().find(name);
  return found == stand_ins().end() ? nullptr : &found->second;
}

std::vector<std::string> stand_in_names() {
  std::vector<std::string> names;
  for (const auto& [name, header] : stand_ins()) {
    names.push_back(name);
  }
  return names;
}

}  // namespace cubind
