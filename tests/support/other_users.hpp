// What processes of other users can reach.
#pragma once

#include <sys/stat.h>

#include <filesystem>
#include <optional>

namespace cubind::test {

/// The first folder, from the path upwards, that not everyone can enter: "/" itself may be one, in a chroot.
/// None: other users reach the path.
inline std::optional<std::filesystem::path> closed_to_others(std::filesystem::path path) {
  for (;; path = path.parent_path()) {
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0 || (info.st_mode & S_IXOTH) == 0) {
      return path;
    }
    if (path == path.root_path()) {
      return std::nullopt;
    }
  }
}

}  // namespace cubind::test
