#pragma once

#include <string>

#include "base/digest.hpp"
#include "base/file.hpp"

namespace cubind {

/// 16 random hexadecimal digits.
inline std::string new_id() {
  return Digest::of(read_file("/proc/sys/kernel/random/uuid")).hex().substr(0, 16);
}

}  // namespace cubind
