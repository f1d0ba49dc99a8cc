#include <algorithm>
#include <cstdlib>
#include <system_error>

#include "base/file.hpp"
#include "tuner/toolchain/toolchain.hpp"

namespace cubind {
namespace {

namespace fs = std::filesystem;

void add_folder(std::vector<fs::path>& folders, const fs::path& folder) {
  std::error_code ignored;
  if (fs::is_directory(folder, ignored) && std::ranges::find(folders, folder) == folders.end()) {
    folders.push_back(folder);
  }
}

// PREFIX/lib/python3*/site-packages and Debian's dist-packages, newest Python first.
void add_packages_of(const fs::path& prefix, std::vector<fs::path>& folders) {
  std::vector<fs::path> pythons;
  std::error_code error;
  for (fs::directory_iterator entry(prefix / "lib", error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().filename().string().starts_with("python3")) {
      pythons.push_back(entry->path());
    }
  }
  const auto newer = [](const fs::path& a, const fs::path& b) {
    const std::string left = a.filename().string();
    const std::string right = b.filename().string();
    return left.size() != right.size() ? left.size() > right.size() : left > right;
  };
  std::ranges::sort(pythons, newer);
  for (const fs::path& python : pythons) {
    add_folder(folders, python / "site-packages");
    add_folder(folders, python / "dist-packages");
  }
}

// The prefixes of python3 on PATH: the folder of its name (a virtual environment), and the folder of its
// file. Runs no Python.
std::vector<fs::path> python_prefixes(const Environment& environment) {
  const char* variable = environment("PATH");
  std::string_view path = variable != nullptr ? variable : "";
  while (!path.empty()) {
    const std::size_t colon = path.find(':');
    const fs::path python = fs::path(path.substr(0, colon)) / "python3";
    path.remove_prefix(colon == std::string_view::npos ? path.size() : colon + 1);
    std::error_code error;
    const fs::path file = fs::canonical(python, error);
    if (python.is_absolute() && !error) {
      return {python.parent_path().parent_path(), file.parent_path().parent_path()};
    }
  }
  return {};
}

}  // namespace

std::vector<fs::path> find_site_packages(const Environment& environment) {
  std::vector<fs::path> folders;
  if (const char* active = environment("VIRTUAL_ENV"); active != nullptr && *active != '\0') {
    add_packages_of(active, folders);
  }
  for (const fs::path& prefix : python_prefixes(environment)) {
    add_packages_of(prefix, folders);
    add_packages_of(prefix / "local", folders);
  }
  if (const char* home = environment("HOME"); home != nullptr && *home != '\0') {
    add_packages_of(fs::path(home) / ".local", folders);
  }
  return folders;
}

ToolchainSearch ToolchainSearch::of_process() {
  ToolchainSearch search;
  search.environment = [](const char* variable) -> const char* { return std::getenv(variable); };
  search.toolkit_folders = {"/usr/local/cuda"};
  search.site_packages = find_site_packages(search.environment);
  search.install_folders = {executable_dir().parent_path() / "cuda"};
  if (const auto tree = source_tree_around(executable_dir())) {
    search.fallback_folders = {*tree / ".deps" / "cuda"};
  }
  return search;
}

}  // namespace cubind
