// Which files of this machine a kernel spec may read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace cubind {

/// The folders whose files may be read, and nothing else of the machine: the author of a spec
/// may have fewer permissions than its reader. A link counts by what it leads to.
class SourceFolders {
 public:
  /// Everything: a user's own command reads with his own rights.
  SourceFolders() = default;
  explicit SourceFolders(std::vector<std::filesystem::path> folders) : folders_(std::move(folders)) {}

  /// The content of the file. Absent: there is none, or it may not be read, or it lies elsewhere; which of
  /// these it is is not told. Without a limit of folders a file that may not be read throws PermissionDenied.
  /// Throws ResourceExhausted above max_bytes, Unavailable where reading fails.
  std::optional<std::string> read(const std::filesystem::path& path, std::uint64_t max_bytes) const;

  /// Whether the folder, by its name alone, lies in one of these.
  bool hold(const std::filesystem::path& folder) const;
  /// Whether what the path leads to lies in one of these. False where it leads nowhere.
  bool holds_target(const std::filesystem::path& path) const;

 private:
  bool lies_within(const std::filesystem::path& canonical) const;

  std::vector<std::filesystem::path> folders_;
};

}  // namespace cubind
