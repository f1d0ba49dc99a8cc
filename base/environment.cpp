#include "base/environment.hpp"

#include <unistd.h>

#include <algorithm>

namespace cubind {

std::vector<std::string> own_environment() {
  std::vector<std::string> result;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    result.emplace_back(*entry);
  }
  return result;
}

std::vector<std::string> own_environment_with(const std::vector<std::string>& variables) {
  std::vector<std::string> result = own_environment();
  for (const std::string& variable : variables) {
    const std::string name = variable.substr(0, variable.find('=') + 1);
    std::erase_if(result, [&](const std::string& one) { return one.starts_with(name); });
    result.push_back(variable);
  }
  return result;
}

}  // namespace cubind
