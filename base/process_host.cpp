#include "base/process_host.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <fstream>

namespace cubind {

std::string process_host() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  struct stat name_space {};
  if (boot.empty() || ::stat("/proc/self/ns/pid", &name_space) != 0) {
    return "";
  }
  return boot + "/" + std::to_string(name_space.st_ino);
}

std::string host_name() {
  std::array<char, 64> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

}  // namespace cubind
