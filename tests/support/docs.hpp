#pragma once

#include <stdexcept>
#include <string>

#include "base/file.hpp"
#include "tests/support/paths.hpp"

namespace cubind::test {

/// Of a page of docs/: the lines between the first fence of this language below the heading ("## Asking") and
/// the fence's end.
inline std::string code_block(const std::string& page, const std::string& heading,
                              const std::string& language) {
  const std::string text = "\n" + read_file(source_dir() / "docs" / page), fence = "\n```" + language + "\n";
  const std::size_t from = text.find(fence, text.find("\n" + heading + "\n"));
  if (from == std::string::npos) {
    throw std::runtime_error("docs/" + page + " has no block of " + language + " below " + heading);
  }
  const std::size_t begin = from + fence.size();
  return text.substr(begin, text.find("\n```", begin) + 1 - begin);
}

}  // namespace cubind::test
