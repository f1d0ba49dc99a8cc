#pragma once

#include <string>
#include <vector>

namespace cubind {

/// This process's environment, "NAME=VALUE" each, for a child that shall have the same.
std::vector<std::string> own_environment();
/// own_environment() with these variables, "NAME=VALUE" each, added or replaced.
std::vector<std::string> own_environment_with(const std::vector<std::string>& variables);

}  // namespace cubind
