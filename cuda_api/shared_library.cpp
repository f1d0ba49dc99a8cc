#include "cuda_api/shared_library.hpp"

#include <dlfcn.h>
#include <link.h>

namespace cubind::cuda {

std::optional<SharedLibrary> SharedLibrary::open_first(std::span<const std::string> candidates,
                                                       std::string& tried) {
  for (const std::string& candidate : candidates) {
    if (void* handle = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL)) {
      return SharedLibrary(handle, candidate);
    }
    const char* reason = dlerror();
    if (!tried.empty()) {
      tried += "; ";
    }
    tried += reason != nullptr ? reason : candidate;
  }
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
