#include "tuner/worker/gpu_lock.hpp"

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
  auto first = GpuLock::try_acquire(folder.path() / "run", "GPU-1");
  CHECK(first);
  CHECK_FALSE(GpuLock::try_acquire(folder.path() / "run", "GPU-1"));
  CHECK(GpuLock::try_acquire(folder.path() / "run", "GPU-2"));
  first.reset();
  CHECK(GpuLock::try_acquire(folder.path() / "run", "GPU-1"));
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
    if (::write(ready[1], &byte, 1) != 1) ::_exit(1);
    while (true) ::pause();
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

}  // namespace
}  // namespace cubind::worker
