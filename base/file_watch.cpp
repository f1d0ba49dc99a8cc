#include "base/file_watch.hpp"

#include <sys/stat.h>

#include <utility>

#include "base/periodic.hpp"

namespace cubind {
namespace {

std::optional<FileStamp> stamp_of(const std::filesystem::path& file) {
  struct stat info {};
  if (::stat(file.c_str(), &info) != 0) {
    return std::nullopt;
  }
  const auto since_epoch = [](const timespec& at) {
    return std::chrono::seconds(at.tv_sec) + std::chrono::nanoseconds(at.tv_nsec);
  };
  return FileStamp{.modified = since_epoch(info.st_mtim),
                   .changed = since_epoch(info.st_ctim),
                   .inode = info.st_ino,
                   .size = static_cast<std::uintmax_t>(info.st_size)};
}

}  // namespace

FileStamps stamps_of(const std::vector<std::filesystem::path>& files) {
  FileStamps stamps;
  for (const std::filesystem::path& file : files) {
    stamps.push_back(stamp_of(file));
  }
  return stamps;
}

std::jthread watch_files(std::vector<std::filesystem::path> files, FileStamps seen,
                         std::chrono::milliseconds period, ReadFiles read) {
  return every(period, [files = std::move(files), seen = std::move(seen), read = std::move(read),
                        failed = false]() mutable {
    if (FileStamps now = stamps_of(files); failed || now != seen) {
      const bool is_again = failed && now == seen;
      seen = std::move(now);  // first: a file that changes while it is read is read again
      failed = !read(is_again);
    }
    return true;
  });
}

}  // namespace cubind
