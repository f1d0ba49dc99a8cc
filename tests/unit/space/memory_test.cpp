#include <catch2/catch.hpp>
#include <fstream>

#include "tests/unit/space/sample_spaces.hpp"
#include "tuner/space/configuration_space.hpp"

namespace cubind::test {
namespace {

// Of this process, ever.
std::size_t peak_memory_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) {
      return std::stoul(line.substr(6));
    }
  }
  return 0;
}

}  // namespace

TEST_CASE("a million million combinations take less than 200 MB") {
  const SampleSpace parts = tangled_space();
  const ConfigurationSpace space(parts.axes, parts.checks());
  CHECK(space.memory() < 50u << 20);
  CHECK(peak_memory_kib() > 0);
  CHECK(peak_memory_kib() < 200 * 1024);
}

}  // namespace cubind::test
