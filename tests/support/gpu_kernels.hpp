// The kernels that the tests run on a GPU.
#pragma once

#include <regex>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "tests/support/paths.hpp"

namespace cubind::test {

/// The source of all.
inline std::string gpu_kernels() {
  const auto folder = source_dir() / "tests" / "gpu" / "device_worker";
  return read_file(folder / "kernels.cu") + "\n" + read_file(folder / "cheats.cu");
}

/// The names of a source's kernels that are declared by extern "C" __global__ void.
inline std::vector<std::string> kernel_names(const std::string& source) {
  static const std::regex kPattern(R"(extern "C" __global__ void (\w+))");
  std::vector<std::string> names;
  for (std::sregex_iterator i(source.begin(), source.end(), kPattern), end; i != end; ++i) {
    names.push_back((*i)[1]);
  }
  return names;
}

}  // namespace cubind::test
