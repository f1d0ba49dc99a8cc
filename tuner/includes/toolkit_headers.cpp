#include "tuner/includes/toolkit_headers.hpp"

#include <algorithm>
#include <array>
#include <iterator>

#include "tuner/includes/include_path.hpp"
#include "tuner/includes/include_scan.hpp"

namespace cubind {
namespace {

using Kind = IncludeReference::Kind;

constexpr auto kCcclFolders = std::to_array<std::string_view>({"cub", "cuda", "nv", "thrust"});

std::string_view first_folder(std::string_view name) {
  const std::size_t slash = name.find('/');
  return slash == std::string_view::npos ? std::string_view{} : name.substr(0, slash);
}

}  // namespace

bool is_of_cccl(std::string_view name) {
  return std::ranges::find(kCcclFolders, first_folder(name)) != kCcclFolders.end();
}

const ToolkitHeader* ToolkitHeaders::find(const std::string& name) {
  const std::lock_guard lock(mutex_);
  Entry& entry = load(name);
  if (entry.exists && !entry.header) {
    entry.header = make(name, entry.content);
    std::string().swap(entry.content);
  }
  return entry.header.get();
}

const std::vector<std::string>& ToolkitHeaders::package_of(const std::string& name) {
  const std::string folder(is_of_cccl(name) ? kCcclFolders.front() : first_folder(name));
  const std::lock_guard lock(mutex_);
  const auto [package, fresh] = packages_.try_emplace(folder);
  if (fresh && list_ && !folder.empty()) {
    const std::vector<std::string> folders =
        is_of_cccl(name) ? std::vector<std::string>(kCcclFolders.begin(), kCcclFolders.end())
                         : std::vector{folder};
    for (const std::string& one : folders) {
      std::ranges::copy(list_(one), std::back_inserter(package->second));
    }
    std::ranges::sort(package->second);
  }
  return package->second;
}

// With mutex_ held.
ToolkitHeaders::Entry& ToolkitHeaders::load(const std::string& name) {
  const auto [entry, fresh] = entries_.try_emplace(name);
  if (fresh && !name.empty() && !climbs(normalized_path(name)) && !is_absolute(name)) {
    if (std::optional<std::string> content = read_(name)) {
      entry->second.exists = true;
      entry->second.content = std::move(*content);
    }
  }
  return entry->second;
}

// With mutex_ held.
std::unique_ptr<const ToolkitHeader> ToolkitHeaders::make(const std::string& name,
                                                          const std::string& content) {
  auto header = std::make_unique<ToolkitHeader>();
  std::string text;
  std::size_t copied = 0;
  for (const IncludeReference& reference : scan_includes(content).references) {
    if (reference.kind != Kind::Include && reference.kind != Kind::HasInclude) {
      continue;  // of the other compilers that it serves
    }
    if (reference.by_macro) {
      header->by_macro = true;
      continue;
    }
    const std::string target = spelled(name, reference.name, reference.angled);
    header->includes.push_back(target);
    if (target != reference.name) {
      text.append(content, copied, reference.begin - copied).append(target);
      copied = reference.end;
    }
  }
  text.append(content, copied);
  header->file = std::make_shared<const CompilerFile>(CompilerFile::of(name, std::move(text)));
  return header;
}

// The name by which NVRTC finds what is meant.
std::string ToolkitHeaders::spelled(const std::string& from, const std::string& name, bool angled) {
  const std::string plain = external_name(name);
  std::string beside = path_below(folder_of(from), name);
  if (!angled && beside != plain && !is_absolute(name) && load(beside).exists) {
    return beside;
  }
  return load(plain).exists || is_absolute(name) ? plain : name;
}

}  // namespace cubind
