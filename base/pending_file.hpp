// A file that appears under its name when it is whole.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/unique_fd.hpp"

namespace cubind {

/// The file that a user's output replaces: the one that links lead to. A folder, a device or a pipe is
/// InvalidArgument, since what takes its place would be a file.
std::filesystem::path replaceable_file(const std::filesystem::path& path);

/// Written in its target's folder, for its owner alone, without a name until it is committed: a process that
/// is killed leaves nothing. Where the file system has no such files it is ".NAME.XXXXXX", and that may stay.
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
  void give_name();

  const std::filesystem::path target_;
  std::string path_;  // empty: it has no name
  UniqueFd fd_;
  bool committed_ = false;
};

}  // namespace cubind
