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
bool is_armed(const std::filesystem::path& place) {
  unsigned passes = 0;
  if (std::ifstream file(place); !(file >> passes)) {
    return false;
  }
  if (passes > 0) {
    std::ofstream(place) << passes - 1 << '\n';
  }
  return passes == 0;
}

}  // namespace

void failpoint(std::string_view name) {
  static const char* const folder = std::getenv("CUBIND_FAILPOINTS");
  if (!folder) {
    return;
  }
  const std::filesystem::path place = std::filesystem::path(folder) / name;
  if (!is_armed(place)) {
    return;
  }
  std::ofstream(place.string() + ".reached") << '\n';
  while (std::filesystem::exists(place)) {
    std::this_thread::sleep_for(kLook);
  }
}

}  // namespace cubind
