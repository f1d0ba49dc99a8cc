// Names and paths of includes: '/' separated, whatever the machine.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace cubind {

/// Without "." and empty parts; ".." stays at the front only.
std::string normalized_path(std::string_view path);

/// A name as seen from a folder; "" is the root.
std::string path_below(std::string_view folder, std::string_view name);

/// "" for a path without a folder.
std::string folder_of(const std::string& path);

/// Whether a normalized path begins with "..".
bool climbs(std::string_view path);

bool is_absolute(std::string_view name);

/// The rest of the path below a folder; absent if the path does not lie in it.
std::optional<std::string> below(const std::string& folder, const std::string& path);

/// The name of a file that is not among the spec's own, as NVRTC gets it. A name that climbs is kept, and so
/// is an absolute one but for a mark in front, with which it names no file of any machine.
std::string external_name(const std::string& name);
inline constexpr std::string_view kAbsoluteMark = "(absolute path)";

}  // namespace cubind
