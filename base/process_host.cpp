#include "base/process_host.hpp"

#include <sys/stat.h>

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

}  // namespace cubind
