// Two kernel specs of one name.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>

#include "client/connection.hpp"

namespace cubind::ctl {

/// What stands against a kernel of this name in `file`: the daemon serves one from another file. Empty: it
/// does not, or it does not answer in time.
std::string name_clash(const Connection& connection, const std::string& name,
                       const std::filesystem::path& file, std::chrono::milliseconds deadline);

}  // namespace cubind::ctl
