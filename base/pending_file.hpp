// A file that appears under its name when it is whole.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/unique_fd.hpp"

namespace cubind {

/// Written next to its target as ".NAME.XXXXXX", for its owner alone. Removed unless it is committed; a
/// process that is killed leaves it.
class PendingFile {
 public:
  /// Throws Error with the target's path, as do the others.
  explicit PendingFile(std::filesystem::path target);
  ~PendingFile();
  PendingFile(const PendingFile&) = delete;
  PendingFile& operator=(const PendingFile&) = delete;

  void append(std::string_view bytes);
  /// The target is on the disk and has these bytes and this mode, whatever was there before.
  void commit(unsigned mode);

 private:
  std::filesystem::path folder() const;

  const std::filesystem::path target_;
  std::string path_;
  const UniqueFd fd_;
  bool committed_ = false;
};

}  // namespace cubind
