#include "tests/support/paths.hpp"

#include <cstdlib>
#include <string>

namespace cubind::test {
namespace {

namespace fs = std::filesystem;

// The package's root if this executable lies in one.
std::optional<fs::path> package_root() {
  const fs::path root = fs::read_symlink("/proc/self/exe").parent_path().parent_path();
  if (fs::exists(root / "variants") && fs::exists(root / "bin" / "cubind")) {
    return root;
  }
  return std::nullopt;
}

std::optional<fs::path> first_existing(const char* variable, const std::string& built) {
  const char* named = std::getenv(variable);
  if (named != nullptr && *named != '\0') {
    return fs::path(named);
  }
  if (!built.empty() && fs::exists(built)) {
    return fs::path(built);
  }
  return std::nullopt;
}

}  // namespace

fs::path source_dir() { return package_root().value_or(CUBIND_BUILT_FROM); }

fs::path bin_dir() {
  const auto root = package_root();
  return root ? *root / "bin" : fs::path(CUBIND_BUILT_BIN);
}

fs::path faulty_worker() { return bin_dir().parent_path() / "tests" / "faulty" / "cubind-worker"; }

std::optional<fs::path> cuda_home() { return first_existing("CUBIND_CUDA_HOME", CUBIND_BUILT_CUDA); }

std::optional<fs::path> cuda12_home() {
  return first_existing("CUBIND_TEST_CUDA12_HOME", CUBIND_BUILT_CUDA12);
}

}  // namespace cubind::test
