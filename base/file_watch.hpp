// Files that are read again when they change.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
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

/// Looks at the files once per period, from a thread of its own.
class FileWatch {
 public:
  /// Reads the files. False: they cannot be used as they are. `is_again`: nor could they before, with the
  /// same stamps.
  using Read = std::function<bool(bool is_again)>;

  /// Calls `read` when the stamps of the files are not `seen` any more, and every period as long as it
  /// returns false. The caller takes `seen` before it reads the files for the first time.
  FileWatch(std::vector<std::filesystem::path> files, FileStamps seen, std::chrono::milliseconds period,
            Read read);
  ~FileWatch();
  FileWatch(const FileWatch&) = delete;
  FileWatch& operator=(const FileWatch&) = delete;

 private:
  void run();

  const std::vector<std::filesystem::path> files_;
  const std::chrono::milliseconds period_;
  const Read read_;
  FileStamps seen_;  // on the thread
  std::mutex mutex_;
  std::condition_variable stop_;
  bool stopping_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace cubind
