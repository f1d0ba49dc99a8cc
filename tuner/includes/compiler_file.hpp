#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/digest.hpp"

namespace cubind {

/// A file as NVRTC gets it: a memory header or the source. `name` is unique within a closure and says nothing
/// about where the file lies. Every include that resolves to such a file is spelled by its name: NVRTC knows
/// no folders, so
/// `#include "../b.cuh"` in "a/c.cuh" is handed over as `#include "b.cuh"`. Most texts stay as they are.
struct CompilerFile {
  std::string name;
  std::string content;
  Digest digest;  // of content

  static CompilerFile of(std::string name, std::string content) {
    const Digest digest = Digest::of(content);
    return {.name = std::move(name), .content = std::move(content), .digest = digest};
  }
  bool operator==(const CompilerFile&) const = default;
};

/// A file that many closures have: one of the toolkit's.
using SharedFile = std::shared_ptr<const CompilerFile>;

/// The content of a file, absent if there is none. It gets only normalized paths ('/' separated, no "." or
/// empty part, ".." at the front at most), and may get a path several times.
using FileLookup = std::function<std::optional<std::string>(const std::string& path)>;

}  // namespace cubind
