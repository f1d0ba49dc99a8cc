#include "tuner/worker/gpu_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <thread>

#include "base/error.hpp"

namespace cubind::worker {
namespace {

constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;

// Read access is enough for a lock. No O_CREAT on an existing file: in a folder with the sticky bit the
// kernel refuses that for files of other users (fs.protected_regular).
UniqueFd open_shared(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), kFlags));
  if (fd || errno != ENOENT) {
    return fd;
  }
  fd = UniqueFd(::open(path.c_str(), kFlags | O_CREAT | O_EXCL, 0644));
  if (fd) {
    ::fchmod(fd.get(), 0644);  // whatever the umask
  }
  return fd || errno != EEXIST ? std::move(fd) : UniqueFd(::open(path.c_str(), kFlags));
}

bool everybody_writes_to(const char* folder) {
  struct stat info {};
  return ::stat(folder, &info) == 0 && S_ISDIR(info.st_mode) && (info.st_mode & 01777) == 01777;
}

}  // namespace

std::filesystem::path gpu_lock_folder() { return everybody_writes_to("/run/lock") ? "/run/lock" : "/tmp"; }

std::optional<GpuLock> GpuLock::try_acquire(const std::filesystem::path& folder, const std::string& uuid) {
  const std::filesystem::path path = folder / ("cubind-" + uuid + ".lock");
  UniqueFd fd = open_shared(path.string());
  if (!fd) {
    throw system_error(path.string(), "open", errno);
  }
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    throw Error(ErrorCode::FailedPrecondition, path.string(),
                "stands where a GPU's lock belongs and is not a plain file");
  }
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) {
    return GpuLock(std::move(fd));
  }
  if (errno == EWOULDBLOCK) {
    return std::nullopt;
  }
  throw system_error(path.string(), "flock", errno);
}

std::optional<GpuLock> GpuLock::acquire(const std::filesystem::path& folder, const std::string& uuid,
                                        std::chrono::milliseconds patience) {
  constexpr std::chrono::milliseconds kStep{20};
  const auto deadline = std::chrono::steady_clock::now() + patience;
  auto lock = try_acquire(folder, uuid);
  while (!lock && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(kStep);
    lock = try_acquire(folder, uuid);
  }
  return lock;
}

}  // namespace cubind::worker
