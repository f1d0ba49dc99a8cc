#include "tuner/worker/remedies.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <utility>

namespace cubind::worker {
namespace {

/// Names that a header declares, for kernels that include none.
struct Declared {
  std::string_view header;
  std::span<const std::string_view> names;
};

constexpr auto kMath = std::to_array<std::string_view>({"INFINITY", "NAN", "HUGE_VALF", "M_PI"});
constexpr auto kFloat = std::to_array<std::string_view>(
    {"FLT_MAX", "FLT_MIN", "FLT_EPSILON", "DBL_MAX", "DBL_MIN", "DBL_EPSILON"});
constexpr auto kLimits = std::to_array<std::string_view>(
    {"CHAR_BIT", "INT_MAX", "INT_MIN", "UINT_MAX", "LONG_MAX", "LLONG_MAX", "LLONG_MIN", "ULLONG_MAX"});
constexpr auto kIntegers = std::to_array<std::string_view>(
    {"int8_t", "int16_t", "int32_t", "int64_t", "uint8_t", "uint16_t", "uint32_t", "uint64_t", "intptr_t",
     "uintptr_t", "INT32_MAX", "UINT32_MAX", "INT64_MAX", "UINT64_MAX", "SIZE_MAX"});
constexpr auto kOldIntegers = std::to_array<std::string_view>({"uint", "ushort", "ulong"});
constexpr auto kOfNewerCpp = std::to_array<std::string_view>({"concept", "char8_t"});
constexpr std::array<Declared, 5> kDeclared = {{{"<cmath>", kMath},
                                                {"<cfloat>", kFloat},
                                                {"<climits>", kLimits},
                                                {"<cstdint>", kIntegers},
                                                {"<cuda_runtime.h>", kOldIntegers}}};

/// Of the C and C++ libraries, what only host code calls.
constexpr auto kHostNames = std::to_array<std::string_view>(
    {"atof",          "atoi",     "atol",     "calloc",  "clock_gettime", "exit",   "fclose",
     "fopen",         "fprintf",  "fread",    "fscanf",  "fwrite",        "getenv", "gettimeofday",
     "omp_get_wtime", "puts",     "rand",     "realloc", "srand",         "sscanf", "stderr",
     "stdout",        "strcmp",   "strtol",   "system",  "cerr",          "cin",    "cout",
     "endl",          "ifstream", "ofstream", "string",  "stringstream",  "vector"});

/// Of the CUDA runtime for device code, which NVRTC lacks, what one instruction does.
constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kInstructions{{
    {"cudaGridDependencySynchronize", R"(asm volatile("griddepcontrol.wait;" ::: "memory"))"},
    {"cudaTriggerProgrammaticLaunchCompletion", R"(asm volatile("griddepcontrol.launch_dependents;"))"},
}};

constexpr std::string_view kHostCode = "put host code between #ifndef __CUDACC_RTC__ and #endif";

// The text between the first `before` and the next `after`; empty if the line has no such.
std::string_view between(std::string_view line, std::string_view before, std::string_view after) {
  const std::size_t begin = line.find(before);
  const std::size_t from = begin == std::string_view::npos ? line.size() : begin + before.size();
  const std::size_t end = line.find(after, from);
  return end == std::string_view::npos ? std::string_view{} : line.substr(from, end - from);
}

std::string remedy_for_name(std::string_view name) {
  for (const Declared& declared : kDeclared) {
    if (std::ranges::find(declared.names, name) != declared.names.end()) {
      return std::string(declared.header) + " has it";
    }
  }
  if (std::ranges::find(kHostNames, name) != kHostNames.end()) {
    return std::string(kHostCode);
  }
  if (std::ranges::find(kOfNewerCpp, name) != kOfNewerCpp.end()) {
    return "C++20 has it: set --std=c++20 in \"options\"";
  }
  for (const auto& [function, instruction] : kInstructions) {
    if (name == function) {
      return "NVRTC has no CUDA runtime for device code: for sm_90 and later write " +
             std::string(instruction);
    }
  }
  return name.starts_with("cuda") ? std::string(kHostCode) +
                                        "; device code has no CUDA runtime to call, and the option --minimal "
                                        "leaves out names that begin with cuda"
                                  : "";
}

// Empty: none is known.
std::string remedy(std::string_view line) {
  if (const std::string_view name = between(line, "identifier \"", "\" is undefined"); !name.empty()) {
    return remedy_for_name(name);
  }
  if (const std::string_view name = between(line, "namespace \"std\" has no member \"", "\"");
      !name.empty()) {
    const std::string known = remedy_for_name(name);
    return !known.empty()
               ? known
               : "of the standard library there is what device code uses most; CCCL has more: cuda::std of "
                 "<cuda/std/...>";
  }
  if (line.find("texture is not a template") != std::string_view::npos) {
    return "texture references left CUDA with version 12: read through a pointer";
  }
  if (line.find("\"register\" storage class specifier is not allowed") != std::string_view::npos) {
    return "C++17 has none: remove it, or write #define register above the kernel";
  }
  if (line.find("extern \"C\"__") != std::string_view::npos) {
    return "C++ reads \"C\"__ as one word: put a space behind \"C\"";
  }
  if (line.find("requires --extended-lambda") != std::string_view::npos) {
    return "NVRTC has no such option: a lambda of a kernel needs no __device__";
  }
  const std::string device_option = "set --device-as-default-execution-space in \"options\"";
  if (line.find("relaxed-constexpr") != std::string_view::npos ||
      line.find("RELAXED_CONSTEXPR") != std::string_view::npos) {
    return device_option + ", with which __CUDACC_RELAXED_CONSTEXPR__ is defined";
  }
  if (line.find(" are not allowed in JIT mode") != std::string_view::npos) {
    return std::string(kHostCode) + ", prototypes too, or " + device_option;
  }
  return "";
}

}  // namespace

// Each remedy once: a header of prototypes has the same error many times.
std::string with_remedies(std::string_view log) {
  std::string text;
  while (!log.empty()) {
    const std::size_t end = log.find('\n');
    const std::string_view line = log.substr(0, end);
    text.append(line);
    const std::string found = remedy(line);
    if (!found.empty() && text.find(found) == std::string::npos) {
      text.append(" (").append(found).append(")");
    }
    text.append(end == std::string_view::npos ? "" : "\n");
    log.remove_prefix(end == std::string_view::npos ? log.size() : end + 1);
  }
  return text;
}

}  // namespace cubind::worker
