// What the package's libstdc++.so.6 has besides Debian 12's objects (libstdc++_pic.a), so that it runs with
// glibc 2.34 and serves programs of older versions. Linked by package.sh.
#include <sys/random.h>

#include <cerrno>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <mutex>

// std::random_device calls it, and only glibc 2.36 has it. The map of libstdc++ keeps this one hidden.
extern "C" std::uint32_t arc4random() noexcept {
  std::uint32_t value = 0;
  while (getrandom(&value, sizeof value, 0) != sizeof value) {
    // EINTR: interrupted before the kernel had gathered enough entropy. Otherwise a seccomp filter refuses
    // the call, and nothing is random.
    if (errno != EINTR) {
      std::abort();
    }
  }
  return value;
}

// The version under which GCC 11 and earlier have std::condition_variable::wait; symbol_version.py binds
// carried libraries to it.
extern "C" void cubind_wait_of_gcc_11(std::condition_variable& self, std::unique_lock<std::mutex>& lock) {
  self.wait(lock);
}
__asm__(
    ".symver "
    "cubind_wait_of_gcc_11,_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE@GLIBCXX_3.4.11");
