// A foreign process on the GPU.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/subprocess.hpp"

namespace cubind::test {

std::vector<std::string> environment_without(std::string_view name);

/// This program again, which holds 1 GiB of the GPU's memory when this returns, and until it is killed. It
/// writes there all the time: an idle process is no other user.
Subprocess hold_a_gigabyte();

}  // namespace cubind::test
