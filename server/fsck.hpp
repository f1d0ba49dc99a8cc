// cubind --fsck: checks a store and says what to do.
#pragma once

#include <filesystem>

namespace cubind {

/// Prints what it finds on standard output. 0: sound, 1: damaged. Throws where the store cannot be checked.
int fsck(const std::filesystem::path& database);

}  // namespace cubind
