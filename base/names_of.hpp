#pragma once

#include <string>
#include <vector>

namespace cubind {

/// The names of some items, in their order.
template <typename Items>
std::vector<std::string> names_of(const Items& items) {
  std::vector<std::string> names;
  for (const auto& item : items) {
    names.push_back(item.name);
  }
  return names;
}

}  // namespace cubind
