// Files that are read again when they change.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

namespace cubind {

/// What changes with the content of a file, or with the rights to read it.
struct FileStamp {
  std::chrono::nanoseconds modified{}, changed{};  // since the epoch; chmod changes the second alone
  std::uint64_t inode = 0;
  std::uintmax_t size = 0;
  bool operator==(const FileStamp&) const = default;
};
using FileStamps = std::vector<std::optional<FileStamp>>;  // absent: there is no such file

FileStamps stamps_of(const std::vector<std::filesystem::path>& files);

/// Reads the files. False: they cannot be used as they are. `is_again`: nor could they before, with the same
/// stamps.
using ReadFiles = std::function<bool(bool is_again)>;

/// Looks at the files once per period (every()), and calls `read` when their stamps are not `seen` any more,
/// and every period as long as it returns false. The caller takes `seen` before it reads the files for the
/// first time.
std::jthread watch_files(std::vector<std::filesystem::path> files, FileStamps seen,
                         std::chrono::milliseconds period, ReadFiles read);

}  // namespace cubind
