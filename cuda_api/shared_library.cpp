#include "cuda_api/shared_library.hpp"

#include <dlfcn.h>
#include <link.h>

#include <filesystem>

namespace cubind::cuda {
namespace {

// A library that is there may lack one of its own libraries: the loader's message then begins with that one.
bool is_absence(const std::string& reason, const std::string& candidate) {
  return reason == candidate + ": cannot open shared object file: No such file or directory";
}

}  // namespace

std::optional<SharedLibrary> SharedLibrary::open_first(std::span<const std::string> candidates,
                                                       std::string& tried) {
  std::string reasons;
  for (const std::string& candidate : candidates) {
    if (void* handle = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL)) {
      return SharedLibrary(handle, candidate);
    }
    const char* error = dlerror();
    const std::string reason = error != nullptr ? error : candidate;
    if (!is_absence(reason, candidate)) {
      reasons += (reasons.empty() ? "" : "; ") + reason;
    }
  }
  tried = !reasons.empty() || candidates.empty()
              ? reasons
              : std::filesystem::path(candidates.front()).filename().string() + " was not found";
  return std::nullopt;
}

void* SharedLibrary::symbol(const char* name) const { return dlsym(handle_, name); }

std::string SharedLibrary::path() const {
  link_map* map = nullptr;
  if (dlinfo(handle_, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr) {
    return name_;
  }
  return map->l_name;
}

}  // namespace cubind::cuda
