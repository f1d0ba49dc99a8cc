#include "tuner/worker/gpu_lock.hpp"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <thread>

#include "base/file.hpp"

namespace cubind::worker {
namespace {

TEST_CASE("one holder at a time and another GPU has a lock of its own") {
  const TempDir folder;
  auto first = GpuLock::try_acquire(folder.path(), "GPU-1");
  CHECK(first);
  CHECK_FALSE(GpuLock::try_acquire(folder.path(), "GPU-1"));
  CHECK(GpuLock::try_acquire(folder.path(), "GPU-2"));
  first.reset();
  CHECK(GpuLock::try_acquire(folder.path(), "GPU-1"));
}

TEST_CASE("a holder that is just ending is waited for") {
  const TempDir folder;
  auto first = GpuLock::try_acquire(folder.path(), "GPU-1");
  std::thread ending([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    first.reset();
  });
  CHECK(GpuLock::acquire(folder.path(), "GPU-1", std::chrono::seconds(10)));
  ending.join();
}

TEST_CASE("a killed holder leaves no lock behind") {
  const TempDir folder;
  int ready[2];
  REQUIRE(::pipe(ready) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto lock = GpuLock::try_acquire(folder.path(), "GPU-1");
    const char byte = lock ? 'y' : 'n';
    if (::write(ready[1], &byte, 1) != 1) {
      ::_exit(1);
    }
    while (true) {
      ::pause();
    }
  }
  char byte = 0;
  REQUIRE(::read(ready[0], &byte, 1) == 1);
  CHECK(byte == 'y');
  CHECK_FALSE(GpuLock::try_acquire(folder.path(), "GPU-1"));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  CHECK(GpuLock::try_acquire(folder.path(), "GPU-1"));
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_CASE("a lock can be taken by other users whatever the umask of the first was") {
  const TempDir folder;
  const mode_t umask = ::umask(0777);
  GpuLock::try_acquire(folder.path(), "GPU-1");
  ::umask(umask);
  struct stat info {};
  REQUIRE(::stat((folder.path() / "cubind-GPU-1.lock").c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0644);
}

TEST_CASE("a link or a pipe instead of a lock is refused") {
  const TempDir folder;
  write_file_atomic(folder.path() / "victim", "x");
  std::filesystem::create_symlink("victim", folder.path() / "cubind-GPU-1.lock");
  CHECK_THROWS_WITH(GpuLock::try_acquire(folder.path(), "GPU-1"), Catch::Contains("cubind-GPU-1.lock"));
  REQUIRE(::mkfifo((folder.path() / "cubind-GPU-2.lock").c_str(), 0600) == 0);
  CHECK_THROWS_WITH(GpuLock::try_acquire(folder.path(), "GPU-2"), Catch::Contains("not a plain file"));
}

TEST_CASE("the locks lie where every user of the machine finds them") {
  const std::filesystem::path folder = gpu_lock_folder();
  CHECK((folder == "/run/lock" || folder == "/tmp"));
}

}  // namespace
}  // namespace cubind::worker
