// A library of one shipped kernel, and of more folders: to read all that ship takes longer than most tests.
#pragma once

#include <utility>

#include "server/kernel_library.hpp"
#include "tests/support/paths.hpp"

namespace cubind::test {

struct VectorAddLibrary : KernelLibrary {
  explicit VectorAddLibrary(const Clock& clock, std::filesystem::path more = {})
      : KernelLibrary(folders(std::move(more)), clock, {source_dir() / "variants" / "common"}) {}

  static std::vector<std::filesystem::path> folders(std::filesystem::path more) {
    std::vector<std::filesystem::path> all{source_dir() / "variants" / "vector_add"};
    if (!more.empty()) {
      all.push_back(std::move(more));
    }
    return all;
  }
};

}  // namespace cubind::test
