#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "tuner/toolchain/toolchain.hpp"

namespace cubind {
namespace {

Digest read_and_digest(int fd, const std::string& path) {
  std::vector<char> buffer(1 << 20);
  Sha256 hash;
  while (true) {
    const ssize_t count = ::read(fd, buffer.data(), buffer.size());
    if (count == 0) {
      return hash.finish();
    }
    if (count < 0 && errno != EINTR) {
      throw system_error(path, "read", errno);
    }
    if (count > 0) {
      hash.update({buffer.data(), static_cast<std::size_t>(count)});
    }
  }
}

}  // namespace

Digest FileDigests::of(const std::filesystem::path& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (!fd || ::fstat(fd.get(), &status) != 0) {
    throw system_error(path.string(), "open", errno);
  }
  const Stamp stamp{.size = static_cast<std::uint64_t>(status.st_size),
                    .inode = status.st_ino,
                    .modified_ns = status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec};
  {
    const std::lock_guard lock(mutex_);
    const auto found = known_.find(path);
    if (found != known_.end() && found->second.first == stamp) {
      return found->second.second;
    }
  }
  const Digest digest = read_and_digest(fd.get(), path.string());
  const std::lock_guard lock(mutex_);
  known_.insert_or_assign(path, std::pair(stamp, digest));
  return digest;
}

}  // namespace cubind
