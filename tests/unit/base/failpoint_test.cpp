#include <catch2/catch.hpp>

#include <cstdlib>
#include <thread>

#include "base/failpoint.hpp"
#include "base/file.hpp"

namespace cubind {
namespace {

// The variable is read once in a process.
const std::filesystem::path& failpoints() {
  static const TempDir folder("cubind-failpoints");
  static const int set = ::setenv("CUBIND_FAILPOINTS", folder.path().c_str(), 1);
  REQUIRE(set == 0);
  static const std::filesystem::path path = folder.path();
  return path;
}

TEST_CASE("a failpoint lets pass as often as its file says and holds the next one until the file is gone") {
  const std::filesystem::path path = failpoints() / "here", reached = failpoints() / "here.reached";
  failpoint("here");
  write_file_atomic(path, "2\n");
  failpoint("here");
  failpoint("elsewhere");
  failpoint("here");
  CHECK_FALSE(std::filesystem::exists(reached));
  bool went_on = false;
  std::thread held([&] {
    failpoint("here");
    went_on = true;
  });
  while (!std::filesystem::exists(reached)) {
    std::this_thread::yield();
  }
  std::filesystem::remove(path);
  held.join();
  CHECK(went_on);
}

}  // namespace
}  // namespace cubind
