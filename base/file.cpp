#include "base/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <vector>

#include "base/error.hpp"

namespace cubind {
namespace {

namespace fs = std::filesystem;

void write_all(int fd, std::string_view bytes, const fs::path& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) {
        continue;
      }
      throw system_error(path.string(), "cannot write", errno);
    }
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

void sync_folder(const fs::path& folder) {
  const UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // Some file systems refuse to sync a folder (EINVAL); the rename is then as durable as they make it.
  if (!fd || (::fsync(fd.get()) != 0 && errno != EINVAL)) {
    throw system_error(folder.string(), "cannot sync the folder", errno);
  }
}

fs::path from_environment(const char* name) {
  const char* value = std::getenv(name);
  const fs::path path(value == nullptr ? "" : value);
  return path.is_absolute() ? path : fs::path();  // the XDG specification: relative paths are to be ignored
}

// Unlinks the temporary file unless it has become the real one.
class PendingFile {
 public:
  explicit PendingFile(std::string pattern)
      : path_(std::move(pattern)), fd_(::mkostemp(path_.data(), O_CLOEXEC)) {}
  ~PendingFile() {
    if (fd_ && !done_) {
      ::unlink(path_.c_str());
    }
  }
  PendingFile(const PendingFile&) = delete;
  PendingFile& operator=(const PendingFile&) = delete;

  int fd() const { return fd_.get(); }
  const std::string& path() const { return path_; }
  void done() { done_ = true; }

 private:
  std::string path_;
  UniqueFd fd_;
  bool done_ = false;
};

}  // namespace

std::string read_file(const fs::path& path, std::uint64_t max_bytes) {
  // O_NONBLOCK: opening a FIFO without a writer must not hang; it means nothing for a regular file.
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) {
    throw system_error(path.string(), "cannot open", errno);
  }
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) {
    throw system_error(path.string(), "cannot stat", errno);
  }
  if (!S_ISREG(info.st_mode)) {
    throw Error(ErrorCode::InvalidArgument, path.string(),
                S_ISDIR(info.st_mode) ? "is a folder" : "is not a file");
  }
  std::string content;
  content.resize(std::min<std::uint64_t>(static_cast<std::uint64_t>(info.st_size), max_bytes) + 1);
  std::size_t size = 0;
  for (;;) {
    // One byte more than fstat promised shows the end; files in /proc promise 0, growing ones too little.
    if (size == content.size()) {
      content.resize(std::min<std::uint64_t>(2 * size + 4096, max_bytes + 1));
    }
    const ssize_t got = ::read(fd.get(), content.data() + size, content.size() - size);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      throw system_error(path.string(), "cannot read", errno);
    }
    size += static_cast<std::size_t>(got);
    if (size > max_bytes) {
      throw Error(ErrorCode::ResourceExhausted, path.string(),
                  "is longer than " + std::to_string(max_bytes) + " bytes");
    }
    if (got == 0) {
      content.resize(size);
      return content;
    }
  }
}

void write_file_atomic(const fs::path& path, std::string_view content, unsigned mode) {
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  PendingFile pending((folder / ("." + path.filename().string() + ".XXXXXX")).string());
  if (pending.fd() < 0) {
    throw system_error(path.string(), "cannot create a temporary file next to it", errno);
  }
  write_all(pending.fd(), content, path);
  if (::fchmod(pending.fd(), static_cast<mode_t>(mode)) != 0) {
    throw system_error(path.string(), "cannot set the mode", errno);
  }
  if (::fsync(pending.fd()) != 0) {
    throw system_error(path.string(), "cannot sync", errno);
  }
  if (::rename(pending.path().c_str(), path.c_str()) != 0) {
    throw system_error(path.string(), "cannot replace", errno);
  }
  pending.done();
  sync_folder(folder);
}

void write_output(const fs::path& path, std::string_view content) {
  struct stat info {};
  const bool exists = ::stat(path.c_str(), &info) == 0;
  if (exists && S_ISDIR(info.st_mode)) {
    throw Error(ErrorCode::InvalidArgument, path.string(), "is a folder: name a file");
  }
  if (exists && S_ISREG(info.st_mode)) {
    write_file_atomic(canonical_path(path), content, info.st_mode & 07777);
    return;
  }
  std::error_code ignored;
  if (!exists && !fs::is_symlink(path, ignored)) {
    write_file_atomic(path, content);
    return;
  }
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY, 0644));
  if (!fd) {
    throw system_error(path.string(), "cannot open", errno);
  }
  write_all(fd.get(), content, path);
}

TempDir::TempDir(std::string_view prefix) {
  fs::path root = from_environment("TMPDIR");
  if (root.empty()) {
    root = "/tmp";
  }
  std::string pattern = (root / (std::string(prefix) + ".XXXXXX")).string();
  if (::mkdtemp(pattern.data()) == nullptr) {
    throw system_error(pattern, "cannot create a temporary folder", errno);
  }
  path_ = pattern;
}

TempDir::~TempDir() { remove(); }

TempDir::TempDir(TempDir&& other) noexcept : path_(std::exchange(other.path_, fs::path())) {}

TempDir& TempDir::operator=(TempDir&& other) noexcept {
  if (this != &other) {
    remove();
    path_ = std::exchange(other.path_, fs::path());
  }
  return *this;
}

void TempDir::remove() noexcept {
  if (!path_.empty()) {
    std::error_code ignored;  // a leftover under /tmp is no reason to end the process
    fs::remove_all(path_, ignored);
  }
}

fs::path absolute_path(const fs::path& path) {
  std::error_code error;
  fs::path result = fs::absolute(path, error).lexically_normal();
  if (error) {
    throw system_error(path.string(), "cannot make the path absolute", error.value());
  }
  // "a/b/" and "a/b" are one folder.
  return !result.has_filename() && result.has_relative_path() ? result.parent_path() : result;
}

fs::path canonical_path(const fs::path& path) {
  std::error_code error;
  fs::path result = fs::canonical(path, error);
  if (error) {
    throw system_error(path.string(), "cannot resolve the path", error.value());
  }
  return result;
}

void create_folders(const fs::path& path, unsigned mode) {
  const fs::path target = absolute_path(path);
  std::error_code error;
  fs::create_directories(target.parent_path(), error);
  if (error) {
    throw system_error(target.parent_path().string(), "cannot create the folder", error.value());
  }
  if (::mkdir(target.c_str(), static_cast<mode_t>(mode)) == 0) {
    return;
  }
  const int error_number = errno;
  if (error_number != EEXIST || !fs::is_directory(target, error)) {
    throw system_error(target.string(), "cannot create the folder", error_number);
  }
}

fs::path user_runtime_dir() {
  const fs::path runtime = from_environment("XDG_RUNTIME_DIR");
  return runtime.empty() ? fs::path("/tmp/cubind-" + std::to_string(::getuid())) : runtime / "cubind";
}

fs::path user_data_dir() {
  if (const fs::path data = from_environment("XDG_DATA_HOME"); !data.empty()) {
    return data / "cubind";
  }
  if (const fs::path home = from_environment("HOME"); !home.empty()) {
    return home / ".local" / "share" / "cubind";
  }
  throw Error(ErrorCode::FailedPrecondition, "data folder",
              "neither XDG_DATA_HOME nor HOME is an absolute path");
}

fs::path executable_dir() { return canonical_path("/proc/self/exe").parent_path(); }

std::optional<fs::path> source_tree_around(const fs::path& folder) {
  std::error_code ignored;
  for (fs::path at = folder; at.has_relative_path(); at = at.parent_path()) {
    if (!fs::exists(at / "schemas" / "cubind.proto", ignored)) {
      continue;
    }
    return fs::exists(at / "CMakeLists.txt", ignored) ? std::optional(at) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace cubind
