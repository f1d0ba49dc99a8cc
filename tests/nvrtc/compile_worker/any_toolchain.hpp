#pragma once

#include <catch2/catch.hpp>
#include <cstddef>

#include "tests/nvrtc/toolchains/toolchains.hpp"

namespace cubind::test {

/// Each of the machine's toolchains in turn: the test case runs once for each.
inline const Toolchain& any_toolchain() {
  return toolchains()[GENERATE(range(std::size_t{0}, toolchains().size()))];
}

}  // namespace cubind::test
