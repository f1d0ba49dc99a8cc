// A training job as pins name it: within its namespace.
#pragma once

#include <string>

namespace cubind {

/// Names have no control characters, so no job of one namespace has the key of one of another.
struct PinnedJob {
  std::string name_space, name;

  std::string key() const { return name_space.empty() ? name : name_space + "\n" + name; }

  static PinnedJob of_key(const std::string& key) {
    const std::size_t line_end = key.find('\n');
    return line_end == std::string::npos ? PinnedJob{"", key}
                                         : PinnedJob{key.substr(0, line_end), key.substr(line_end + 1)};
  }
};

}  // namespace cubind
