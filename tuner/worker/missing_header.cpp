#include "tuner/worker/missing_header.hpp"

#include <algorithm>
#include <array>
#include <span>

#include "tuner/includes/include_path.hpp"

namespace cubind::worker {
namespace {

// NVRTC gets files and no folders. It says so in these words, after the quoted name of the file.
constexpr std::string_view kNoFolders = "\" (no directories in search list)";
// And in these for an absolute name, whether there is such a file or not: the process can open none.
constexpr std::string_view kNoFiles = "\": Too many open files";

/// The packages that bring headers. CUDA 12 has a name of its own for each wheel, and ships crt/ with nvcc.
struct HeaderPackage {
  std::string_view wheel;     // on PyPI, CUDA 13 and later
  std::string_view wheel_12;  // on PyPI, CUDA 12
  std::string_view debian;    // in NVIDIA's repository for Debian and Ubuntu, without the release
  std::span<const std::string_view> prefixes;
};

constexpr auto kCcclHeaders = std::to_array<std::string_view>({"cuda/", "cub/", "thrust/", "nv/"});
constexpr auto kCrtHeaders = std::to_array<std::string_view>({"crt/"});
constexpr auto kRuntimeHeaders = std::to_array<std::string_view>(
    {"cuda.h", "cuda_bf16", "cuda_fp", "cuda_pipeline", "cuda_awbarrier", "cuda_runtime",
     "cuda_device_runtime", "cooperative_groups", "mma.h", "math_constants.h", "cuComplex.h", "vector_types",
     "vector_functions", "driver_types.h", "library_types.h"});
constexpr std::array<HeaderPackage, 3> kPackages = {{
    {"nvidia-cuda-cccl", "nvidia-cuda-cccl-cu12", "cuda-cccl", kCcclHeaders},
    {"nvidia-cuda-crt", "nvidia-cuda-nvcc-cu12", "cuda-crt", kCrtHeaders},
    {"nvidia-cuda-runtime", "nvidia-cuda-runtime-cu12", "cuda-cudart-dev", kRuntimeHeaders},
}};

const HeaderPackage* package_of(std::string_view header) {
  const auto brings = [&](const HeaderPackage& package) {
    return std::ranges::any_of(package.prefixes,
                               [&](std::string_view prefix) { return header.starts_with(prefix); });
  };
  const auto* const found = std::ranges::find_if(kPackages, brings);
  return found == kPackages.end() ? nullptr : found;
}

// `pip install 'nvidia-cuda-cccl==13.*'` or `apt install cuda-cccl-13-0`
std::string commands_for(const HeaderPackage& package, int major, int minor) {
  const std::string release = std::to_string(major);
  const std::string wheel(major == 12 ? package.wheel_12 : package.wheel);
  return "`pip install '" + wheel + "==" + release + ".*'` or `apt install " + std::string(package.debian) +
         "-" + release + "-" + std::to_string(minor) + "`";
}

std::string explanation(std::string_view header, int major, int minor) {
  if (header.starts_with(kAbsoluteMark) || is_absolute(header)) {
    return " (an absolute path: only the spec's own files, its \"headers\" folders and the CUDA toolkit can "
           "be "
           "included)";
  }
  if (climbs(normalized_path(header))) {
    return " (it leaves the spec's folder: list its folder under \"headers\")";
  }
  std::string text = " (not in the spec's folder, its \"headers\" or the CUDA toolkit; ";
  if (const HeaderPackage* package = package_of(header)) {
    return text + commands_for(*package, major, minor) + " brings it; then start the agent again)";
  }
  return text +
         "put headers of host code between #ifndef __CUDACC_RTC__ and #endif; a name in a macro is only "
         "found if a #define or the spec's \"defines\" has it as a whole, or but for one parameter)";
}

// The log with each `end` behind a quoted name replaced by what is to be said of that name.
std::string explained(std::string_view log, std::string_view end, int major, int minor) {
  std::string text;
  for (std::size_t at = 0; (at = log.find(end)) != std::string_view::npos;) {
    const std::string_view before = log.substr(0, at);
    const std::string_view header = before.substr(before.rfind('"') + 1);
    text.append(before).append("\"").append(explanation(header, major, minor));
    log.remove_prefix(at + end.size());
  }
  return text.append(log);
}

}  // namespace

std::string explain_missing_headers(std::string_view log, int major, int minor) {
  return explained(explained(log, kNoFolders, major, minor), kNoFiles, major, minor);
}

}  // namespace cubind::worker
