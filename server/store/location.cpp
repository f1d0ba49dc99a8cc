#include "server/store/location.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <sstream>
#include <string_view>

#include "base/error.hpp"
#include "base/file.hpp"

namespace cubind::store {
namespace {

constexpr std::string_view kUnix = "unix://";

// statfs(2) and linux/magic.h; Lustre, GPFS and Ceph from their own headers.
constexpr std::array<std::uint64_t, 9> kNetworkFileSystems{
    0x6969,      // NFS
    0x517b,      // SMB
    0xff534d42,  // CIFS
    0xfe534d42,  // SMB2
    0x5346414f,  // AFS
    0x73757245,  // Coda
    0x00c36400,  // Ceph
    0x0bd00bd0,  // Lustre
    0x47504653,  // GPFS
};

}  // namespace

bool is_network_file_system(std::uint64_t magic) {
  return std::ranges::find(kNetworkFileSystems, magic & 0xffffffff) != kNetworkFileSystems.end();
}

void refuse_network_file_system(const std::filesystem::path& folder) {
  struct statfs info {};
  if (::statfs(folder.c_str(), &info) != 0) {
    throw system_error(folder.string(), "statfs", errno);
  }
  if (is_network_file_system(static_cast<std::uint64_t>(info.f_type))) {
    throw Error(
        ErrorCode::FailedPrecondition, folder.string(),
        "is on a network file system, where the store's locks do not work: give --db a path on a local disk");
  }
}

std::filesystem::path resolved(std::filesystem::path file) {
  constexpr int kMostLinks = 40;  // as many as Linux follows
  std::error_code failed;
  for (int links = 0; std::filesystem::is_symlink(file, failed); ++links) {
    if (links == kMostLinks) {
      throw system_error(file.string(), "cannot resolve the path", ELOOP);
    }
    file = file.parent_path() / std::filesystem::read_symlink(file);
  }
  return canonical_path(file.parent_path()) / file.filename();
}

void make_folder(const std::filesystem::path& folder, const std::string& remedy) {
  try {
    create_folders(folder, 0700);
    if (::access(folder.c_str(), W_OK | X_OK) != 0) {
      throw system_error(folder.string(), "cannot be written", errno);
    }
  } catch (const Error& error) {
    throw Error(error.code(), error.where(), error.cause() + "; " + remedy);
  }
}

namespace {

/// What the process that has the lock says of itself.
std::string holder_of(int fd) {
  std::array<char, 256> text{};
  const auto size = ::pread(fd, text.data(), text.size() - 1, 0);
  std::istringstream words(size > 0 ? std::string(text.data(), static_cast<std::size_t>(size)) : "unknown");
  std::string pid, address;
  words >> pid >> address;
  const std::string who =
      "another cubind (pid " + pid + (address.empty() ? "" : ", at " + address) + ") has it open: ";
  std::error_code ignored;
  if (address.starts_with(kUnix) && !std::filesystem::exists(address.substr(kUnix.size()), ignored)) {
    return who +
           "it is starting or ending, or its socket was removed and no caller reaches it: end it (kill " +
           pid + ")";
  }
  return who + (address.empty() ? "" : "connect to that one (CUBIND_ADDRESS=" + address + "), ") + "end it";
}

}  // namespace

UniqueFd lock_file(const std::filesystem::path& path, const std::string& address) {
  const std::string name = path.string() + ".lock";
  UniqueFd fd(::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) {
    throw system_error(name, "open", errno);
  }
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    throw Error(ErrorCode::FailedPrecondition, path.string(),
                holder_of(fd.get()) + ", or give this one its own --socket, and its own --db or --store");
  }
  const std::string self = std::to_string(::getpid()) + " " + address;
  if (::ftruncate(fd.get(), 0) != 0 || ::pwrite(fd.get(), self.data(), self.size(), 0) < 0) {
    // The lock is what counts; the rest is for the message alone, and a full disk must not keep a daemon from
    // starting.
  }
  return fd;
}

void refuse_other_than_file(const std::filesystem::path& path) {
  std::error_code failed;
  if (const auto there = std::filesystem::status(path, failed);
      std::filesystem::exists(there) && !std::filesystem::is_regular_file(there)) {
    throw Error(ErrorCode::FailedPrecondition, path.string(),
                "is a folder, a device or a pipe, and not a file: name another path");
  }
}

UniqueFd lock_database(const std::filesystem::path& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CREAT | O_CLOEXEC, 0644));
  if (!fd) {
    throw system_error(path.string(), "open", errno);
  }
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    throw Error(ErrorCode::FailedPrecondition, path.string(),
                "another cubind has it open, and its file " + path.string() +
                    ".lock was removed: end that one (fuser " + path.string() +
                    " prints its pid), or give this one its own --db");
  }
  return fd;
}

bool mend_write_version(const std::filesystem::path& path) {
  constexpr off_t kWriter = 18;
  constexpr char kNewest = 2;
  std::array<char, 20> header{};
  const UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd || ::pread(fd.get(), header.data(), header.size(), 0) != static_cast<ssize_t>(header.size())) {
    return false;
  }
  const auto is_known = [](char version) { return version >= 1 && version <= kNewest; };
  const char writer = header[kWriter], reader = header[kWriter + 1];
  return std::string_view(header.data()) == "SQLite format 3" && is_known(reader) && !is_known(writer) &&
         ::pwrite(fd.get(), &reader, 1, kWriter) == 1;
}

std::filesystem::path move_aside(const std::filesystem::path& path, const std::string& date) {
  const std::string aside = path.string() + ".damaged-" + date;
  for (const char* suffix : {"", "-wal", "-shm"}) {
    std::error_code failed;
    std::filesystem::rename(path.string() + suffix, aside + suffix, failed);
    if (failed && failed != std::errc::no_such_file_or_directory) {
      throw system_error(path.string() + suffix, "rename", failed.value());
    }
  }
  return aside;
}

std::optional<FileId> file_id(const std::filesystem::path& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    return std::nullopt;
  }
  return FileId{info.st_dev, info.st_ino};
}

}  // namespace cubind::store
