#pragma once

#include <string>
#include <vector>

namespace cubind {

/// This process's environment, "NAME=VALUE" each, for a child that shall have the same.
std::vector<std::string> own_environment();

}  // namespace cubind
