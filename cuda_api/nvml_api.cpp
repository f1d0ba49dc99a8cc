#include "cuda_api/nvml_api.hpp"

#include "cuda_api/shared_library.hpp"

namespace cubind::cuda {

std::vector<std::string> nvml_candidates() {
  return {"libnvidia-ml.so.1", "/usr/local/nvidia/lib64/libnvidia-ml.so.1",
          "/usr/lib/wsl/lib/libnvidia-ml.so.1"};
}

std::shared_ptr<const NvmlApi> find_nvml(std::string& tried, const std::vector<std::string>& candidates) {
  const auto library = SharedLibrary::open_first(candidates, tried);
  if (!library) {
    return nullptr;
  }
  NvmlApi api;
  api.library = library->path();
#define CUBIND_LOAD(member, exported, parameters) \
  api.member = reinterpret_cast<NvmlResult(*) parameters>(library->symbol(#exported));
  CUBIND_NVML_FUNCTIONS(CUBIND_LOAD)
#undef CUBIND_LOAD
  if (api.init == nullptr || api.shutdown == nullptr) {
    tried = api.library + ": has no nvmlInit_v2";
    return nullptr;
  }
  if (const NvmlResult result = api.init(); result != NvmlResult::Success) {
    tried = api.library + ": nvmlInit fails with " + std::to_string(static_cast<int>(result));
    return nullptr;
  }
  return {new NvmlApi(api), [](const NvmlApi* loaded) {
            loaded->shutdown();
            delete loaded;
          }};
}

}  // namespace cubind::cuda
