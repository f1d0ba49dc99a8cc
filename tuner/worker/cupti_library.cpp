#include "tuner/worker/cupti_library.hpp"

#include <array>
#include <cstdlib>
#include <filesystem>

#include "cuda_api/shared_library.hpp"
#include "tuner/toolchain/toolchain.hpp"

namespace cubind::worker {
namespace {

namespace fs = std::filesystem;

// The soname has the toolkit's major version; the kernel record's fields that are read have not moved
// since 11.
constexpr std::array<const char*, 2> kSonames{"libcupti.so.13", "libcupti.so.12"};

void add_folder(std::vector<std::string>& candidates, const fs::path& folder) {
  std::error_code ignored;
  for (const char* soname : kSonames) {
    if (fs::exists(folder / soname, ignored)) {
      candidates.push_back(folder / soname);
    }
  }
}

void add_toolkit(std::vector<std::string>& candidates, const fs::path& home) {
  for (const char* folder :
       {"lib64", "lib", "extras/CUPTI/lib64", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"}) {
    add_folder(candidates, home / folder);
  }
}

template <typename Function>
bool load(const cuda::SharedLibrary& library, const char* symbol, Function& function) {
  function = reinterpret_cast<Function>(library.symbol(symbol));
  return function != nullptr;
}

}  // namespace

std::vector<std::string> cupti_candidates() {
  const ToolchainSearch search = ToolchainSearch::of_process();
  std::vector<std::string> candidates;
  for (const char* variable : {"CUBIND_CUDA_HOME", "CUDA_HOME"}) {
    const char* home = search.environment(variable);
    if (home != nullptr && *home != '\0') {
      add_toolkit(candidates, home);
    }
  }
  for (const fs::path& home : search.toolkit_folders) {
    add_toolkit(candidates, home);
  }
  for (const fs::path& packages : search.site_packages) {
    for (const char* wheel : {"nvidia/cu13/lib", "nvidia/cuda_cupti/lib"}) {
      add_folder(candidates, packages / wheel);
    }
  }
  for (const auto* homes : {&search.install_folders, &search.fallback_folders}) {
    for (const fs::path& home : *homes) {
      add_toolkit(candidates, home);
    }
  }
  candidates.insert(candidates.end(), kSonames.begin(), kSonames.end());
  return candidates;
}

std::unique_ptr<CuptiLibrary> find_cupti(std::string& tried) {
  const auto library = cuda::SharedLibrary::open_first(cupti_candidates(), tried);
  if (!library) {
    return nullptr;
  }
  auto cupti = std::make_unique<CuptiLibrary>();
  cupti->path = library->path();
  const bool whole = load(*library, "cuptiActivityEnable", cupti->activity_enable) &&
                     load(*library, "cuptiActivityDisable", cupti->activity_disable) &&
                     load(*library, "cuptiActivitySetAttribute", cupti->activity_set_attribute) &&
                     load(*library, "cuptiActivityRegisterCallbacks", cupti->activity_register_callbacks) &&
                     load(*library, "cuptiActivityFlushAll", cupti->activity_flush_all) &&
                     load(*library, "cuptiActivityGetNextRecord", cupti->activity_get_next_record) &&
                     load(*library, "cuptiGetResultString", cupti->get_result_string);
  if (whole) {
    return cupti;
  }
  tried = cupti->path + " lacks a function of the activity API";
  return nullptr;
}

std::string CuptiLibrary::describe(CUptiResult result) const {
  const char* text = nullptr;
  const bool known = get_result_string(result, &text) == CUPTI_SUCCESS && text != nullptr;
  return std::string(known ? text : "CUPTI error") + " (" + std::to_string(static_cast<int>(result)) + ")";
}

}  // namespace cubind::worker
