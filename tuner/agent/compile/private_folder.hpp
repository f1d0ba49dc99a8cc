#pragma once

#include <filesystem>
#include <string>

namespace cubind {

/// A new folder for temporary files that this user alone can enter. It goes with the object, and with all
/// that is in it.
class PrivateFolder {
 public:
  /// PREFIX and six random characters, where the system keeps temporary files. Throws the Error of mkdtemp().
  explicit PrivateFolder(const std::string& prefix);
  ~PrivateFolder();
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace cubind
