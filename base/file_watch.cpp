#include "base/file_watch.hpp"

#include <sys/stat.h>

#include <utility>

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

FileWatch::FileWatch(std::vector<std::filesystem::path> files, FileStamps seen,
                     std::chrono::milliseconds period, Read read)
    : files_(std::move(files)),
      period_(period),
      read_(std::move(read)),
      seen_(std::move(seen)),
      thread_([this] { run(); }) {}

FileWatch::~FileWatch() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stop_.notify_one();
  thread_.join();
}

void FileWatch::run() {
  std::unique_lock lock(mutex_);
  bool failed = false;
  while (!stop_.wait_for(lock, period_, [this] { return stopping_; })) {
    lock.unlock();
    if (FileStamps now = stamps_of(files_); failed || now != seen_) {
      const bool is_again = failed && now == seen_;
      seen_ = std::move(now);  // first: a file that changes while it is read is read again
      failed = !read_(is_again);
    }
    lock.lock();
  }
}

}  // namespace cubind
