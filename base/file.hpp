#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/unique_fd.hpp"

namespace cubind {

/// The whole file. Throws NotFound, PermissionDenied or Unavailable with the path and the system's message,
/// and ResourceExhausted above max_bytes. A folder or a device is InvalidArgument.
std::string read_file(const std::filesystem::path& path, std::uint64_t max_bytes = std::uint64_t{1} << 30);

/// Writes all bytes to the open file. `path` is for the message of an error.
void write_all(int fd, std::string_view bytes, const std::filesystem::path& path);

/// Replaces the file at once: readers see the old or the new content, never a part, also after a crash
/// (temporary file in the same folder, fsync, rename, fsync of the folder). The folder must exist. On an
/// error the old file is as it was and no temporary file is left.
void write_file_atomic(const std::filesystem::path& path, std::string_view content, unsigned mode = 0644);

/// Writes a user's output file, as a shell's redirection would: through a link, a device or a FIFO, and an
/// existing file keeps its mode. A regular file is replaced at once, as write_file_atomic() does. A folder is
/// InvalidArgument.
void write_output(const std::filesystem::path& path, std::string_view content);

/// A folder of its own, mode 0700, removed with everything in it by the destructor.
class TempDir {
 public:
  /// Created under TMPDIR or /tmp.
  explicit TempDir(std::string_view prefix = "cubind");
  ~TempDir();
  TempDir(TempDir&& other) noexcept;
  TempDir& operator=(TempDir&& other) noexcept;

  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  void remove() noexcept;
  std::filesystem::path path_;
};

/// Absolute and without "." and ".."; symbolic links stay, and the path need not exist.
std::filesystem::path absolute_path(const std::filesystem::path& path);

/// Absolute with all symbolic links resolved. Throws where it does not exist.
std::filesystem::path canonical_path(const std::filesystem::path& path);

/// Creates the folder and its parents; `mode` holds for the last one only and only where it is created.
/// Throws if something that is not a folder is in the way.
void create_folders(const std::filesystem::path& path, unsigned mode = 0755);

/// $XDG_RUNTIME_DIR/cubind, or /tmp/cubind-UID where the variable is unset or not absolute. Not created.
std::filesystem::path user_runtime_dir();

/// $XDG_DATA_HOME/cubind, or ~/.local/share/cubind. Throws FailedPrecondition if the home is unknown too.
std::filesystem::path user_data_dir();

/// $XDG_CONFIG_HOME/cubind, or ~/.config/cubind. Empty if the home is unknown too.
std::filesystem::path user_config_dir();

/// The folder of the running executable, symbolic links resolved.
std::filesystem::path executable_dir();

/// The checkout whose build folder `folder` lies in (build/PRESET/bin); absent in a package, which has no
/// build files, also where the package lies in a checkout.
std::optional<std::filesystem::path> source_tree_around(const std::filesystem::path& folder);

}  // namespace cubind
