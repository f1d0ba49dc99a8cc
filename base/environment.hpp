#pragma once

#include <string>
#include <vector>

namespace cubind {

/// This process's environment, "NAME=VALUE" each, for a child that shall have the same.
std::vector<std::string> own_environment();
/// The same with these variables, "NAME=VALUE" each, whatever their values are here.
std::vector<std::string> own_environment_with(const std::vector<std::string>& variables);

}  // namespace cubind
