#include "base/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <vector>

#include "base/error.hpp"
#include "base/pending_file.hpp"

namespace cubind {
namespace {

namespace fs = std::filesystem;

fs::path from_environment(const char* name) {
  const char* value = std::getenv(name);
  const fs::path path(value == nullptr ? "" : value);
  return path.is_absolute() ? path : fs::path();  // the XDG specification: relative paths are to be ignored
}

// Our folder in the one that `variable` names, or else in that part of the home; empty: neither is known.
fs::path user_folder(const char* variable, const fs::path& of_home) {
  if (const fs::path own = from_environment(variable); !own.empty()) {
    return own / "cubind";
  }
  const fs::path home = from_environment("HOME");
  return home.empty() ? fs::path() : home / of_home / "cubind";
}

}  // namespace

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
  PendingFile pending(path);
  pending.append(content);
  pending.commit(mode);
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
  fs::path data = user_folder("XDG_DATA_HOME", fs::path(".local") / "share");
  if (data.empty()) {
    throw Error(ErrorCode::FailedPrecondition, "data folder",
                "neither XDG_DATA_HOME nor HOME is an absolute path");
  }
  return data;
}

fs::path user_config_dir() { return user_folder("XDG_CONFIG_HOME", ".config"); }

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
