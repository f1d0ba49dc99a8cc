#include "tuner/worker/gpu_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <thread>

#include "base/error.hpp"
#include "base/file.hpp"

namespace cubind::worker {

std::optional<GpuLock> GpuLock::try_acquire(const std::filesystem::path& folder, const std::string& uuid) {
  create_folders(folder, 0700);
  const std::filesystem::path path = folder / ("gpu-" + uuid + ".lock");
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) throw system_error(path.string(), "open", errno);
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return GpuLock(std::move(fd));
  if (errno == EWOULDBLOCK) return std::nullopt;
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
