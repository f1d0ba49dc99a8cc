#include "client/cubindctl/kernels/known_specs.hpp"

#include "base/error.hpp"

namespace cubind::ctl {

KnownSpecs known_specs(const std::vector<std::string>& folders) {
  std::vector<std::filesystem::path> paths;
  for (const std::string& folder : folders) {
    if (!std::filesystem::is_directory(folder)) {
      throw Error(ErrorCode::InvalidArgument, "--kernels " + folder, "is not a folder");
    }
    paths.emplace_back(folder);
  }
  if (const auto shipped = shipped_variants()) {
    paths.push_back(*shipped);
  }
  return load_specs(paths);
}

}  // namespace cubind::ctl
