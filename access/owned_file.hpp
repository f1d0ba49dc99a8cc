#pragma once

#include <filesystem>
#include <string>

namespace cubind {

/// Checks a file that decides who is trusted. Throws FailedPrecondition if another user could have written
/// it: its owner is neither this user nor root, or group or others may write to it. `consequence` is for the
/// message: "other users may write to it, and so CONSEQUENCE".
void refuse_foreign_writers(const std::filesystem::path& file, const std::string& consequence);

}  // namespace cubind
