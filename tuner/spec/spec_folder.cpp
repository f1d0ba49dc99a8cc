#include "tuner/spec/spec_folder.hpp"

#include <algorithm>
#include <set>
#include <string>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/json.hpp"

namespace cubind {
namespace {

namespace fs = std::filesystem;

bool is_hidden(const fs::path& path) { return path.filename().string().starts_with('.'); }

using Unlisted = std::map<fs::path, std::error_code>;

/// A link counts by its target: names outside the folder are not revealed.
bool leads_out(const fs::path& folder, const fs::path& child) {
  std::error_code failed;
  return fs::is_symlink(child, failed) && !SourceFolders({folder}).holds_target(child);
}

/// True for a link to a missing file too: the reader finds out.
bool is_spec(const fs::directory_entry& item) {
  std::error_code failed;
  return item.path().extension() == ".json" && (item.is_symlink(failed) || item.is_regular_file(failed));
}

void collect_specs(const fs::path& folder, bool with_children, std::vector<fs::path>& found,
                   Unlisted& unlisted) {
  std::error_code failed;
  std::error_code ignored;  // something that is neither a folder nor a file is not a spec
  std::vector<fs::path> children;
  for (fs::directory_iterator item(folder, failed); !failed && item != fs::directory_iterator();
       item.increment(failed)) {
    if (is_hidden(item->path())) {
      continue;
    }
    if (item->is_directory(ignored) && with_children && item->path().filename() != "tables") {
      if (leads_out(folder, item->path())) {
        unlisted.emplace(item->path(), std::make_error_code(std::errc::permission_denied));
      } else {
        children.push_back(item->path());
      }
    } else if (is_spec(*item)) {
      found.push_back(item->path());
    }
  }
  if (failed && failed != std::errc::no_such_file_or_directory) {
    unlisted.emplace(folder, failed);
  }
  std::ranges::sort(children);
  for (const fs::path& child : children) {
    collect_specs(child, false, found, unlisted);
  }
}

}  // namespace

std::optional<fs::path> shipped_variants() {
  const fs::path packaged = executable_dir().parent_path() / "variants";
  if (fs::is_directory(packaged)) {
    return packaged;
  }
  const auto tree = source_tree_around(executable_dir());
  return tree && fs::is_directory(*tree / "variants") ? std::optional(*tree / "variants") : std::nullopt;
}

std::vector<fs::path> spec_files(const std::vector<fs::path>& folders, Unlisted* unlisted) {
  std::vector<fs::path> files;
  Unlisted skipped;
  std::set<fs::path> seen;
  for (const fs::path& folder : folders) {
    std::vector<fs::path> found;
    collect_specs(folder, true, found, skipped);
    std::ranges::sort(found);
    for (fs::path& file : found) {
      std::error_code failed;
      const fs::path target = fs::canonical(file, failed);
      if (seen.insert(failed ? file : target).second) {
        files.push_back(std::move(file));
      }
    }
  }
  if (unlisted) {
    *unlisted = std::move(skipped);
  }
  return files;
}

std::optional<fs::path> folder_of(const fs::path& file, const std::vector<fs::path>& folders) {
  const auto own = std::ranges::find_if(folders, [&](const fs::path& folder) {
    return std::ranges::mismatch(folder, file).in1 == folder.end();
  });
  return own == folders.end() ? std::nullopt : std::optional(*own);
}

SourceFolders source_folders(const fs::path& file, const std::vector<fs::path>& folders,
                             const std::vector<fs::path>& shared) {
  std::vector<fs::path> readable = shared;
  readable.push_back(folder_of(file, folders).value_or(file.parent_path()));
  return SourceFolders(std::move(readable));
}

KnownSpecs load_specs(const std::vector<fs::path>& folders) {
  KnownSpecs known;
  std::vector<fs::path> shared;
  if (const auto shipped = shipped_variants()) {
    shared.push_back(*shipped);
  }
  for (const fs::path& file : spec_files(folders)) {
    try {
      auto spec = load_kernel_spec(file.string(), {}, source_folders(file, folders, shared));
      known.specs.try_emplace(spec->name, std::move(spec));
    } catch (const Error& error) {
      if (!is_table_file(file)) {
        known.broken.try_emplace(file.stem().string(), error.what());
      }
    }
  }
  return known;
}

bool is_table_file(const fs::path& file, const SourceFolders& folders) {
  constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 30;
  try {
    const auto text = folders.read(file, kMaxBytes);
    const OrderedJson json = text ? parse_json_strict(*text, file.string()) : OrderedJson();
    return json.is_object() && json.contains("format");
  } catch (const Error&) {
    return false;
  }
}

}  // namespace cubind
