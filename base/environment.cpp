#include "base/environment.hpp"

#include <unistd.h>

namespace cubind {

std::vector<std::string> own_environment() {
  std::vector<std::string> result;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    result.emplace_back(*entry);
  }
  return result;
}

}  // namespace cubind
