// Files in a tar archive of POSIX's ustar format, read and written in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace cubind {

/// Contents by path: "blobs/sha256/0a1b".
using Members = std::map<std::string, std::string>;

struct ArchiveLimits {
  std::uint64_t bytes = std::uint64_t{1} << 30;  // of all members
  std::size_t members = 100'000;
};

/// The same members give the same bytes: sorted, without dates and owners. Throws InvalidArgument for a path
/// that is too long for the format (about 250 bytes).
std::string write_tar(const Members& members);

/// Skips folders. Throws InvalidArgument at `where` if the bytes are not a tar, or if a member is not a file
/// (a link, a device), occurs twice, or has a path that is absolute, not normal or leads out; DataLoss if the
/// archive ends early; ResourceExhausted above a limit.
Members read_tar(std::string_view bytes, const std::string& where, const ArchiveLimits& limits = {});

/// Whether the path is relative, normal and only leads down: "a/b.json".
bool is_member_path(std::string_view path);

}  // namespace cubind
