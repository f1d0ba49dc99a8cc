#include "base/failpoint.hpp"

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace cubind {
namespace {

constexpr std::chrono::milliseconds kLook{1};

/// Whether the process is to be held here. An unreadable one does not count.
bool is_armed(const std::filesystem::path& path) {
  unsigned passes = 0;
  if (std::ifstream file(path); !(file >> passes)) {
    return false;
  }
  if (passes > 0) {
    std::ofstream(path) << passes - 1 << '\n';
  }
  return passes == 0;
}

}  // namespace

void failpoint(std::string_view name) {
  static const char* const folder = std::getenv("CUBIND_FAILPOINTS");
  if (!folder) {
    return;
  }
  const std::filesystem::path path = std::filesystem::path(folder) / name;
  if (!is_armed(path)) {
    return;
  }
  std::ofstream(path.string() + ".reached") << '\n';
  while (std::filesystem::exists(path)) {
    std::this_thread::sleep_for(kLook);
  }
}

}  // namespace cubind
