#include "tuner/includes/include_path.hpp"

#include <vector>

#include "base/text.hpp"

namespace cubind {

std::string normalized_path(std::string_view path) {
  std::vector<std::string> parts;
  while (!path.empty()) {
    const std::size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    path.remove_prefix(slash == std::string_view::npos ? path.size() : slash + 1);
    if (part.empty() || part == ".") {
      continue;
    }
    if (part == ".." && !parts.empty() && parts.back() != "..") {
      parts.pop_back();
    } else {
      parts.emplace_back(part);
    }
  }
  return join(parts, "/");
}

std::string path_below(std::string_view folder, std::string_view name) {
  return normalized_path(folder.empty() ? std::string(name) : std::string(folder) + "/" + std::string(name));
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

bool climbs(std::string_view path) { return path == ".." || path.starts_with("../"); }

bool is_absolute(std::string_view name) { return name.starts_with('/'); }

std::optional<std::string> below(const std::string& folder, const std::string& path) {
  if (folder.empty()) {
    return climbs(path) ? std::nullopt : std::optional(path);
  }
  return path.starts_with(folder + "/") ? std::optional(path.substr(folder.size() + 1)) : std::nullopt;
}

std::string external_name(const std::string& name) {
  if (is_absolute(name)) {
    return std::string(kAbsoluteMark) + name;
  }
  std::string plain = normalized_path(name);
  return climbs(plain) ? name : plain;
}

}  // namespace cubind
